"""The bars of this harness: code against itself, and against itself with 1 % planted, in fresh runs, as many as it takes.

Resumable: every trial is written when it is done, and a later call goes on until each pair of pairs has as many as asked for.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from common.python.artifacts import document_text, read_document, write_whole
from common.python.discovery import Pair, discover
from common.python.environment import describe_machine
from common.python.errors import BenchmarkError, ExitCode
from common.python.figures import time_text
from common.python.results import SCHEMA_VERSION, Document, PairResult
from common.python.settings import Device, Settings
from common.python.stats import TIME, gated_logs
from common.python.terminal import Progress, console_for
from common.python.trials import NOISE_ROOT, PLANTED, run_trial

COLUMNS = "| callable | time | A/A p95 | A/A max | `do_bench` A/A p95 | planted 1 % REGRESSED | A/A red or green | seconds |"


class Trial(Document):
    """One timing in one fresh run: the gate's word on it ("" where it is never gated), and the raw units it rests on."""

    target: str
    shape: str
    verdict: str
    logs: tuple[float, ...]
    time_ns: float
    seconds: float
    stop_reason: str

    @property
    def deviation_percent(self) -> float:
        """|speedup - 1| in percent."""
        return 100 * abs(math.expm1(statistics.fmean(self.logs)))

    @property
    def is_planted(self) -> bool:
        """Whether the optimized side is slower by 1 %."""
        return self.target.endswith(PLANTED)

    @property
    def name(self) -> str:
        """The callable, whether or not something is planted in it."""
        return f"{self.target.partition(':')[2].removesuffix(PLANTED)} {'' if self.shape == 'default' else self.shape}".strip()


class Bars(Document):
    """All trials on one device; `do_bench` holds, by callable, ratios of two successive results of triton.testing.do_bench."""

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    driver: str
    torch: str
    commit: str
    trials: tuple[Trial, ...] = ()
    do_bench: dict[str, tuple[float, ...]] = {}


def planted_pairs() -> list[Pair]:
    """The pairs with 1 % planted; each has one without, of the same name less the ending."""
    return [pair for pair in discover(NOISE_ROOT).pairs if pair.name.endswith(PLANTED)]


def trials_of(rows: Sequence[PairResult]) -> list[Trial]:
    """What the rows of one run show."""
    return [
        Trial(
            target=row.target,
            shape=shape,
            verdict=row.verdicts[shape].kind if shape in row.verdicts else "",
            logs=tuple(gated_logs(timing.units, TIME)),
            time_ns=timing.time_ns["baseline"].estimate,
            seconds=timing.seconds,
            stop_reason=timing.stop_reason,
        )
        for row in rows
        for shape, timing in row.timings.items()
    ]


def go_on(path: Path, count: int, deadline: float, settings: Settings) -> Bars:
    """Run trials until there are `count` of every pair or it is late; each is in the file at `path` as soon as it is done."""
    bars = read_document(path, Bars) if path.exists() else _nothing_yet()
    with Progress(console_for(json_output=False)) as progress:
        for _ in range(count):
            for pair in planted_pairs():
                if rounds_of(bars, pair.target) >= count or time.monotonic() > deadline:
                    continue
                rows = run_trial(settings, [pair.target.removesuffix(PLANTED), pair.target], progress)
                bars = bars.model_copy(update={"trials": (*bars.trials, *trials_of(rows))})
                write_whole(path, document_text(bars))
    return bars


def rounds_of(bars: Bars, target: str) -> int:
    """In how many runs `target` was timed."""
    return max(Counter(trial.shape for trial in bars.trials if trial.target == target).values(), default=0)


def _nothing_yet() -> Bars:
    machine = describe_machine(NOISE_ROOT)
    gpu = machine.gpus[0] if machine.gpus else None
    return Bars(
        device=gpu.name if gpu else machine.cpu,
        driver=gpu.driver if gpu else "",
        torch=machine.packages["torch"],
        commit=machine.project.commit if machine.project else "",
    )


def with_do_bench(bars: Bars, repeats: int) -> Bars:
    """`bars` with the ratios that do_bench (its median) gives of each callable against itself. Needs a CUDA device."""
    import torch
    from triton.testing import do_bench

    from common.python.loader import load_side, load_workload
    from common.python.random_inputs import Inputs

    found: dict[str, tuple[float, ...]] = {}
    device = torch.device("cuda")
    for pair in planted_pairs():
        workload = load_workload(pair.workload)
        for shape, entries in workload.timed_shapes.items():
            with tempfile.TemporaryDirectory() as folder:
                inputs = Inputs(workload, entries, 0, device, Path(folder))
                step = load_side(pair.sides["baseline"], workload, None).prepare(inputs.values, entries)
                medians = [float(do_bench(step, return_mode="median")) for _ in range(2 * repeats)]
            name = Trial(target=pair.target, shape=shape, verdict="", logs=(), time_ns=0.0, seconds=0.0, stop_reason="").name
            found[name] = tuple(first / second for first, second in zip(medians[::2], medians[1::2], strict=True))
    return bars.model_copy(update={"do_bench": found})


def together(bars: Bars, others: Sequence[Path]) -> Bars:
    """`bars` with the trials of other files, of the same conditions on other GPUs of the model. Raises BenchmarkError."""
    for path in others:
        found = read_document(path, Bars)
        mine, theirs = ((each.device, each.driver, each.torch) for each in (bars, found))
        if theirs != mine:
            raise BenchmarkError(f"{path}: found trials of {', '.join(theirs)}; expected {', '.join(mine)}")
        bars = bars.model_copy(update={"trials": (*bars.trials, *found.trials), "do_bench": found.do_bench | bars.do_bench})
    return bars


def table(bars: Bars) -> str:
    """What the trials come to, a Markdown row a callable, and the counts that the bars are about under it."""
    alike = [trial for trial in bars.trials if not trial.is_planted]
    lines = [COLUMNS, "|" + " --- |" * COLUMNS.count(" |")]
    for name in dict.fromkeys(trial.name for trial in bars.trials):
        same = [trial for trial in alike if trial.name == name]
        planted = [trial for trial in bars.trials if trial.is_planted and trial.name == name]
        deviations = [trial.deviation_percent for trial in same]
        others = [100 * abs(ratio - 1) for ratio in bars.do_bench.get(name, ())]
        cells = (
            name,
            time_text(statistics.median(trial.time_ns for trial in same)),
            f"{percentile(deviations):.2f} %",
            f"{max(deviations):.2f} %",
            f"{percentile(others):.2f} %" if others else "",
            f"{sum(trial.verdict == 'REGRESSED' for trial in planted)} of {len(planted)}",
            f"{sum(trial.verdict in ('REGRESSED', 'IMPROVED') for trial in same)} of {len(same)}",
            f"{statistics.median(trial.seconds for trial in same):.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    wrong = sum(trial.verdict in ("REGRESSED", "IMPROVED") for trial in alike)
    return "\n".join(
        [*lines, "", f"{bars.device}, driver {bars.driver}, torch {bars.torch}: {wrong} of {len(alike)} A/A trials red or green"]
    )


def percentile(values: Sequence[float], share: float = 0.95) -> float:
    """The value that `share` of `values` do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def main(arguments: list[str] | None = None) -> int:
    """Go on with the trials in a file, and print what they come to so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="where the trials are kept")
    parser.add_argument("others", type=Path, nargs="*", help="files of trials on other GPUs of the model, for the table")
    parser.add_argument("--trials", type=int, default=40, help="how many of every pair; default 40")
    parser.add_argument("--minutes", type=float, default=8.0, help="no trial is begun after that; default 8")
    parser.add_argument("--device", choices=list(Device), default=Device.AUTO)
    parser.add_argument("--do-bench", type=int, metavar="N", help="instead of trials: N repeats of triton.testing.do_bench")
    chosen = parser.parse_args(arguments)
    try:
        deadline = time.monotonic() + 60 * chosen.minutes
        bars = go_on(chosen.file, 0 if chosen.do_bench else chosen.trials, deadline, Settings(device=Device(chosen.device)))
        if chosen.do_bench:
            bars = with_do_bench(bars, chosen.do_bench)
            write_whole(chosen.file, document_text(bars))
        bars = together(bars, chosen.others)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(table(bars))
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    sys.exit(main())
