"""A plan that runs a random share of the accepted rows once more, and accepts nothing.

    ./setup.sh python tools/campaign/again.py tools/campaign/accept_h200.plan --share 0.2 --seed 1 > again.plan

Each command keeps its band (--gate) and its seconds. `--accept`, `--accept-regressions` and `--profile` are left out. A machine's ceilings
(`peak`) are measured first, as in the plan that is read.
"""

from __future__ import annotations

import argparse
import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError
from tools.campaign.plan import Task, plan_text, read_plan

ACCEPTING = frozenset({"--accept", "--accept-regressions"})
PROFILE = "--profile"


def again(tasks: Sequence[Task], share: float, seed: int) -> list[Task]:
    """The `peak` commands, then `share` of the runs that accept, drawn by `seed`, at least one: longest first, so lanes end together."""
    accepting = [task for task in tasks if ACCEPTING & set(_words(task))]
    if not accepting:
        return []
    drawn = random.Random(seed).sample(accepting, max(1, round(share * len(accepting))))
    first = [task for task in tasks if _words(task)[:1] == ["peak"]]
    return first + sorted((replace(task, words=_without_accepting(task)) for task in drawn), key=lambda task: -task.seconds)


def _words(task: Task) -> list[str]:
    return shlex.split(task.words)


def _without_accepting(task: Task) -> str:
    words = [word for word in _words(task) if word not in ACCEPTING]
    if PROFILE in words:
        at = words.index(PROFILE)
        del words[at : at + 2]
    return shlex.join(words)


def main(arguments: list[str] | None = None) -> int:
    """Print the plan."""
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", type=Path, nargs="+", help="what each row is accepted with, such as accept_h200.plan")
    parser.add_argument("--share", type=finite_above_0, default=0.2, help="of the rows, at most 1; default 0.2")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other rows; default 0")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.share > 1:
            raise BenchmarkError(f"--share {chosen.share:g}: found more than 1; expected a share of the rows, such as 0.2")
        tasks = [task for plan in chosen.plans for task in read_plan(plan)]
        if not (found := again(tasks, chosen.share, chosen.seed)):
            raise BenchmarkError(f"{', '.join(map(str, chosen.plans))}: found no run that accepts; expected at least one")
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(plan_text(found), end="")
    return 0


if __name__ == "__main__":
    exit_with(main)
