"""Serving: the client that sends and stamps, what a side gets in its place, and the referee's judgement of a trace."""
