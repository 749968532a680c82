"""What an optimized side can be asked to improve: the goals that the harness measures itself, and in which unit."""

from __future__ import annotations

from typing import Final

TIME: Final = "time"  # of a step; the goal of a workload that names no other
SETUP: Final = "setup"  # the time from a fresh process to the first right answer
MEMORY: Final = "memory"  # the most device memory that a side's process holds during one step
ACCURACY: Final = "accuracy"  # how far the outputs are from the reference, at equal speed
ENERGY: Final = "energy"  # what the GPUs draw for one step, in a continuous second or more

GOALS: Final = (TIME, MEMORY, ACCURACY, ENERGY, SETUP)
"""What `goal` may be without `metrics`; any other is the name of a figure that those return."""

UNITS: Final = {MEMORY: "bytes", ACCURACY: "relative error", ENERGY: "J"}
"""The unit of a side's figure, by goal; that of a metric is its own."""

NEITHER: Final = "neither"
"""`better` of a figure of which neither more nor less is good. It is shown, and can be no goal."""

OF_A_GPU: Final = (MEMORY, ENERGY)
"""Goals whose figure is a GPU's: a row without one is checked, and not measured."""
