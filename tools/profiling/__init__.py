"""Readers of what profilers left."""
