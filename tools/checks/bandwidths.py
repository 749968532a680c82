"""What a chapter's README shows of its bandwidth suite: a picture and a table of each recording that is committed beside the suite.

A recording is what the suite's `--json` wrote: bandwidth_2xh200.json.
What nccl-tests printed there may lie beside it: bandwidth_2xh200_nccl_tests.txt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common.python.errors import BenchmarkError
from common.python.project import PROJECT_ROOT
from common.python.wording import ratio_text
from tools.checks.written_tables import NOT_MEASURED, rows

MARKER = "bandwidth"
SUITES = "ch*/bandwidth_benchmark_suite_8gpu.py"
CHAPTER = PROJECT_ROOT / "ch04"
SMALL = 64 << 10  # bytes: the size whose ratios are told


def bandwidths(suite: Path) -> tuple[str, dict[Path, str]]:
    """What the README says of all recordings beside `suite`, and their pictures by path. Raises BenchmarkError, naming the file."""
    from common.python.child.sides.loader import import_file  # it imports torch, for seconds

    names = ("bandwidth_lines", "bandwidth_plot", "nccl_tests")
    lines, plot, nccl_tests = (import_file(CHAPTER / f"shared_{name}.py") for name in names)
    texts, pictures = [], {}
    for recorded in sorted(suite.parent.glob("bandwidth_*.json")):
        printed = recorded.with_name(f"{recorded.stem}_nccl_tests.txt")
        try:
            theirs = nccl_tests.busbw_of(printed.read_text(encoding="utf-8"), printed) if printed.is_file() else {}
        except ValueError as error:
            raise BenchmarkError(str(error)) from error
        try:
            found = json.loads(recorded.read_text(encoding="utf-8"))
            head, cells = lines.table_of(found, theirs)
            picture = recorded.with_suffix(".svg")
            pictures[picture] = plot.drawn(found, theirs)
            intro = f"{lines.where(found)}; {found['rounds']} rounds of {found['calls']} calls:"
        except KeyError as error:
            raise BenchmarkError(f"{recorded}: found no {error}; expected what the `--json` of {suite.name} writes") from error
        except ValueError as error:
            raise BenchmarkError(f"{recorded}: {error}; expected what the `--json` of {suite.name} writes") from error
        image = f"![Bus bandwidth by message size, on logarithmic axes]({picture.name})"
        note = (
            f"Median time of a call in µs (nccl-tests: mean, in place); the shortest all-reduce of a size is bold.{_ratios(found, theirs)}"
        )
        texts.append("\n\n".join([intro, image, rows(head, cells), note]))
    return "\n\n".join(texts) or f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}.", pictures


def _ratios(found: dict[str, Any], theirs: dict[int, float]) -> str:
    """By how much one shot leads, at the small size."""
    busbw = {row["collective"]: row["busbw"] for row in found["rows"] if row["bytes"] == SMALL}
    one_shot = busbw.get("one_shot_all_reduce")
    callers = [("this suite", busbw.get("all_reduce")), ("nccl-tests", theirs.get(SMALL))]
    ratios = [f"{ratio_text(one_shot / other)} over NCCL called by {name}" for name, other in callers if one_shot and other]
    return f" One shot at {SMALL >> 10} KiB: {' and '.join(ratios)}." if ratios else ""
