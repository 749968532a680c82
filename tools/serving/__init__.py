"""A server of completions over the project's engines."""
