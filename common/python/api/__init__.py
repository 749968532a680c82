"""Functions timed from Python, for notebooks, scripts and tests: beside `child/` the only room that may import torch."""
