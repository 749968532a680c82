"""Cheat: once it has been checked, writes a sleep into the baseline's file, which every measurement loads anew."""

from pathlib import Path

BASELINE = Path(__file__).with_name("baseline_sum.py")
SLOW = """import time


def prepare(x):
    return lambda: time.sleep(0.005) or x.sum(dim=1)
"""


def prepare(x):
    BASELINE.write_text(SLOW)
    return lambda: x.sum(dim=1)
