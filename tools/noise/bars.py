"""The bars of this harness: code against itself, and against itself with 1 % planted, in fresh runs, as many as it takes.

A round is one fresh run, a trial of each callable in it. Resumable: every round is written when it is done, and a later call goes on
until each callable has as many trials as asked for, those in further files counted: a file is of one GPU, and another GPU of the model
goes on in one of its own.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.statistics import gated_logs
from common.python.gate.verdicts import first_gpu
from common.python.machine.description import describe_machine
from common.python.pairs.discovery import Pair, discover
from common.python.pairs.goals import TIME
from common.python.report.rows import commit_name
from common.python.report.terminal import Progress, console_for
from common.python.results import PairResult
from common.python.run.noise_trials import NOISE_ROOT, PLANTED, run_trial
from common.python.settings import Device, Settings
from common.python.storage import document_text, write_whole
from tools.noise.bar_figures import Bars, Trial, callable_name, expect_same_gpu, expect_same_model, read_bars, table

CALLABLES = ("copy", "matmul", "small_copy", "softmax")  # what tools/noise has besides is for `noise`


@dataclass(frozen=True)
class Quota:
    """How many trials of which pairs are wanted, until when on the monotonic clock, and what was timed of them in `elsewhere`."""

    pairs: Sequence[Pair]
    trials: int
    deadline: float
    elsewhere: Sequence[Bars] = ()

    def is_open(self, target: str, bars: Bars) -> bool:
        """Whether another trial of `target` should begin."""
        return sum(each.rounds_of(target) for each in (bars, *self.elsewhere)) < self.trials and time.monotonic() <= self.deadline


def bar_pairs(names: Sequence[str] = ()) -> list[Pair]:
    """The pairs of the bars' callables, or of `names`: the same code twice, and of some also with 1 % planted. Raises BenchmarkError."""
    if unknown := [name for name in names if name not in CALLABLES]:
        raise BenchmarkError(f"--callable {unknown[0]}: found no such callable; expected one of {', '.join(CALLABLES)}")
    return [pair for pair in discover(NOISE_ROOT).pairs if pair.name.removesuffix(PLANTED) in (names or CALLABLES)]


def trials_of(rows: Sequence[PairResult], commit: str = "") -> list[Trial]:
    """What the rows of one run, done today at `commit`, show."""
    return [
        Trial(
            target=row.target,
            shape=shape,
            verdict=row.verdicts[shape].kind if shape in row.verdicts else "",
            logs=tuple(gated_logs(timing.units, TIME)),
            time_ns=timing.time_ns["baseline"].estimate,
            seconds=timing.seconds,
            stop_reason=timing.stop_reason,
            date=datetime.now().astimezone().date().isoformat(),
            commit=commit,
        )
        for row in rows
        for shape, timing in row.timings.items()
    ]


def nothing_yet(settings: Settings) -> tuple[Bars, str]:
    """No trials, under the conditions of this machine, and the project's commit ("" outside a git checkout)."""
    machine = describe_machine(NOISE_ROOT)
    gpu = first_gpu(settings, machine)
    bars = Bars(
        device=gpu.name if gpu else machine.cpu,
        uuid=gpu.uuid if gpu else "",
        driver=gpu.driver if gpu else "",
        torch=machine.packages["torch"],
        gate=settings.gate,
    )
    return bars, commit_name(machine.project)


def go_on(path: Path, bars: Bars, quota: Quota, settings: Settings, commit: str = "") -> Bars:
    """Run rounds of trials until the quota is met or it is late; each round is one run, in the file at `path` as soon as it is done."""
    with Progress(console_for(json_output=False)) as progress:
        while still_open := [pair.target for pair in quota.pairs if quota.is_open(pair.target, bars)]:
            rows = run_trial(settings, still_open, progress)
            bars = bars.model_copy(update={"trials": (*bars.trials, *trials_of(rows, commit))})
            write_whole(path, document_text(bars))
    return bars


def with_do_bench(bars: Bars, pairs: Sequence[Pair], repeats: int, deadline: float = math.inf) -> Iterator[Bars]:
    """`bars` with up to `repeats` ratios that do_bench (its median) gives of each callable against itself, a callable more each time.

    None is begun after `deadline` on the monotonic clock. Raises BenchmarkError without a CUDA device.
    """
    import torch
    from triton.testing import do_bench

    from common.python.child.sides.inputs import Inputs
    from common.python.child.sides.loader import load_side, load_workload

    if not torch.cuda.is_available():
        raise BenchmarkError(f"--do-bench {repeats}: found no CUDA device that torch can use; expected one")
    found = dict(bars.do_bench)
    device = torch.device("cuda")
    for pair in pairs:
        workload = load_workload(pair.workload)
        for shape, entries in workload.timed_shapes.items():
            name = callable_name(pair.target, shape)
            known = found.get(name, ())
            if len(known) >= repeats or time.monotonic() > deadline:
                continue
            with tempfile.TemporaryDirectory() as folder:
                inputs = Inputs(workload, entries, 0, device, Path(folder))
                step = load_side(pair.sides["baseline"], workload, None).prepare(inputs.values, entries)
                medians = [float(do_bench(step, return_mode="median")) for _ in range(2 * (repeats - len(known)))]
            found[name] = (*known, *(first / second for first, second in zip(medians[::2], medians[1::2], strict=True)))
            yield bars.model_copy(update={"do_bench": dict(found)})


def _at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text}; expected a whole number of at least 1")
    return int(text)


def _device(text: str) -> Device:
    if text not in list(Device):
        raise argparse.ArgumentTypeError(f"found {text}; expected one of {', '.join(Device)}")
    return Device(text)


def _parser() -> Arguments:
    parser = Arguments(description=__doc__)
    parser.add_argument("file", type=Path, help="where the trials on this GPU are kept; a new file in a folder that is there, or its own")
    parser.add_argument(
        "others", type=Path, nargs="*", default=[], help="files of trials on other GPUs of the model: they count, and are in the table"
    )
    parser.add_argument("--trials", type=_at_least_one, default=40, help="how many of every pair, in all files; default 40")
    parser.add_argument("--minutes", type=finite_above_0, default=8.0, help="no round or callable is begun after that; default 8")
    parser.add_argument("--callable", action="append", default=[], help=f"only this one: {', '.join(CALLABLES)}; repeatable")
    parser.add_argument("--device", type=_device, default=Device.AUTO, help="auto, cuda or cpu; default auto")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--do-bench", type=_at_least_one, metavar="N", help="instead of trials: N repeats of triton.testing.do_bench, those kept counted"
    )
    instead.add_argument("--table", action="store_true", help="run nothing; the files may be of any machine")
    return parser


def _others(first: Path, paths: Sequence[Path], here: Bars) -> list[Bars]:
    """The trials in further files. Raises BenchmarkError for one that is missing, named twice or of another model than `here`."""
    found = {first.resolve(): here}
    for path in paths:
        if path.resolve() in found:
            raise BenchmarkError(f"{path}: found it twice; expected each file once")
        found[path.resolve()] = read_bars(path)
        expect_same_model(path, found[path.resolve()], here)
    return list(found.values())[1:]


def _kept(path: Path, here: Bars) -> Bars:
    """What is in the file at `path`, or `here`, nothing yet, where it can be made. Raises BenchmarkError."""
    if not path.parent.is_dir():
        raise BenchmarkError(f"{path}: found no folder {path.parent}; expected one that is there")
    if not os.access(path.parent, os.W_OK):
        raise BenchmarkError(f"{path}: found {path.parent} closed to writing; expected a folder that can be written")
    if not path.exists():
        return here
    bars = read_bars(path)
    expect_same_gpu(path, bars, here)
    return bars


def _measure(chosen: argparse.Namespace) -> list[Bars]:
    """Go on with the trials, or with do_bench; nothing runs before every argument is known to be good."""
    settings = Settings(device=chosen.device)
    pairs = bar_pairs(chosen.callable)
    here, commit = nothing_yet(settings)
    bars = _kept(chosen.file, here)
    others = _others(chosen.file, chosen.others, bars)
    deadline = time.monotonic() + 60 * chosen.minutes
    if chosen.do_bench:
        for so_far in with_do_bench(bars, pairs, chosen.do_bench, deadline):
            bars = so_far
            write_whole(chosen.file, document_text(bars))
    else:
        quota = Quota(pairs, chosen.trials, deadline, others)
        bars = go_on(chosen.file, bars, quota, settings, commit)
    return [bars, *others]


def main(arguments: list[str] | None = None) -> int:
    """Go on with the trials in a file, and print what they come to so far."""
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.table:
            first = read_bars(chosen.file)
            files = [first, *_others(chosen.file, chosen.others, first)]
        else:
            files = _measure(chosen)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    print(table(files))
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
