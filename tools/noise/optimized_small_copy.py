"""Optimized: the same copy, so whatever differs is noise."""

from tools.noise.baseline_copy import prepare

__all__ = ["prepare"]
