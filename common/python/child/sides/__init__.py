"""Sides in a worker: loaded, given inputs, called, and their outputs compared."""
