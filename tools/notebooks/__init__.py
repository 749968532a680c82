"""Notebooks that plot what runs kept, and the tables they plot."""
