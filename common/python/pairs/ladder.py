"""A ladder: the steps from a pair's baseline to its optimized side, each one idea more, timed in one interleaved run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.directives import ladder_steps
from common.python.pairs.discovery import SIDES, Pair


def with_rungs(pair: Pair, root: Path) -> Pair:
    """`pair` with a side for each step of its workload's ladder, between baseline and optimized; a variant has no rungs.

    A step is a name, for `optimized_<pair>_<name>` beside the workload, or the path from `root` of a side, which may be a baseline.
    Raises BenchmarkError for a step without a file, and for one whose name a side of the pair has.
    """
    stem = pair.workload.stem.removeprefix("workload_")
    if pair.name != stem:
        return pair
    rungs: dict[str, Path] = {}
    for step in ladder_steps(pair.workload):
        name = Path(step).stem.removeprefix("optimized_")
        places = (
            [root / step] if "/" in step else [pair.workload.with_name(f"optimized_{stem}_{step}{suffix}") for suffix in (".cu", ".py")]
        )
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise BenchmarkError(f"{pair.workload}: found no file of the ladder's step {step!r}; expected {places[0].relative_to(root)}")
        if name in rungs or name in SIDES:
            raise BenchmarkError(f"{pair.workload}: found the ladder's step {step!r} twice, or named as a side; expected a name of its own")
        rungs[name] = found
    first, *others = pair.sides.items()
    return replace(pair, sides=dict([first, *rungs.items(), *others])) if rungs else pair
