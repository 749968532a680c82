"""Pairs whose two sides are the same code, and the same with one percent planted: what a machine's noise is measured with."""
