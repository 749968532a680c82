"""Sentences on what torch.compile did to a side that makes it slow, though it fails in nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from common.python.results import CompilerFinding
from common.python.session.planning import Plan
from common.python.settings import Settings

BEYOND_COMPILATION_S: Final = 25.0
"""Seconds that a row of compiled sides may take on a GPU, with default choices, beside its first compilation."""

_SENTENCES: Final[Mapping[str, str]] = {
    "broken": "torch.compile broke a graph in {places}, the first {first}; expected whole graphs",
    "left": "torch.compile left {functions} to Python, the first {first}; expected all compiled",
    "again": "torch.compile compiled {times} again, first {first}; expected one compilation for all calls",
    "limit": "torch.compile gave {functions} up at its limit of recompilations, the first {first}; expected all compiled",
    "untuned": "autotuning failed {times}, first for {first}; expected one that runs, for PyTorch's own kernel was taken instead",
}


def compiler_notes(plan: Plan, compiled: Mapping[str, Sequence[CompilerFinding]]) -> Iterator[str]:
    """A sentence for each finding of each side, in the order of the plan's sides."""
    for side in plan.sides:
        for finding in compiled.get(side, ()):
            counts = {each: _counted(finding.count, each) for each in ("places", "functions", "times")}
            yield f"{plan.file(side).name}: {_SENTENCES[finding.kind].format(first=finding.first, **counts)}"


def too_long(
    plan: Plan, chosen: Settings, first_s: float, beyond_s: float | None, phases: Mapping[str, float], starting_s: float
) -> Iterator[str]:
    """A sentence on a row that took too long beside its first compilation, where nothing that was asked for explains it, and on what.

    Its processes took `starting_s` of the phase "measure" to start; its first compilation is in the phase "verify".
    A row whose goal is set-up compiles anew in every process, which is what it times. Nothing is promised of a CPU's seconds.
    """
    asked = chosen.profiles or chosen.cold_start or chosen.sweep or chosen.iterations or chosen.warmup or chosen.repeat > 1
    asked = asked or chosen.sustained or chosen.accept_regressions  # a row that is accepted takes more process pairs
    if beyond_s is None or plan.is_cold or plan.device != "cuda" or asked:
        return
    if beyond_s > BEYOND_COMPILATION_S:
        beside = {name: seconds - (first_s if name == "verify" else 0.0) for name, seconds in phases.items()}
        spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in beside.items() if seconds >= 1)
        yield (
            f"found {beyond_s:.0f} s of this row beside the {first_s:.0f} s of its first compilation ({spent}, in {starting_s:.0f} s of "
            f"which its processes started); expected at most {BEYOND_COMPILATION_S:.0f} s"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what if count > 1 else what[:-1]}"
