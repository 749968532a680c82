"""A campaign: the commands of a plan on all GPUs of a machine, each from a clean clone, until it is late; what they accept is brought home.

A GPU is a lane; `--gpus 0+1,2+3` makes lanes of two GPUs, for rows that need two. A command sees the GPUs of its lane.
A line of the plan is `SECONDS [each|alone|all] COMMAND`: about how long it takes; with `each`, once in every lane, one after the other,
before all others, none of which begins if one fails; with `alone`, after those, while no other lane is at work; with `all`, then too, and
it sees every GPU, as ranks must; without, in the lane that is free next. COMMAND is what benchmark_cli is given, as in
`run -t ch09:tiling --accept`, or, after `$`, a shell's command line. None begins that would end too late.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.expectations import Expectations, keep_expectations, read_expectations
from common.python.machine.description import child_environment, describe_machine, lock
from common.python.project import PROJECT_ROOT
from common.python.storage import ARTIFACTS, write_whole
from tools.campaign.plan import ALL, ALONE, EACH, Task, plan_text, read_plan

LEFT = "left.plan"
AND = "+"  # between the GPUs of one lane
_POLL_S = 0.1
_PATIENCE_S = 20.0  # a run that is interrupted still writes what it has
_DEATH_S = 5.0  # a process that waits for a driver may never die


@dataclass(frozen=True)
class Lane:
    """Its GPUs, as CUDA_VISIBLE_DEVICES names them, the clone that its commands run in, and what was expected there before."""

    gpus: tuple[str, ...]
    tree: Path
    before: dict[Path, Expectations]

    def variables(self) -> dict[str, str]:
        """The environment of its commands: its GPUs and no other, the modules of its clone, temporary files of its own."""
        return child_environment(self.tree, "cuda") | {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus), "TMPDIR": str(self.temporary)}

    @property
    def name(self) -> str:
        """Its GPUs, as --gpus names them."""
        return AND.join(self.gpus)

    @property
    def temporary(self) -> Path:
        """Where its commands put temporary files."""
        return self.tree.with_name(f"{self.tree.name}.tmp")


@dataclass
class Campaign:
    """What is done on which lanes, until when on the monotonic clock, and what came of it: how many failed, and what is left."""

    lanes: Sequence[Lane]
    out: Path
    root: Path
    deadline: float
    failed: int = 0
    rows: list[str] = field(default_factory=list)
    _tasks: Sequence[Task] = ()
    _waiting: list[Task] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _begun: int = 0

    def carry_out(self, tasks: Sequence[Task]) -> None:
        """Run them: those of every lane, then those that want to be alone, then the others, each in the order of the plan."""
        self._tasks = tasks
        self._waiting = [task for task in tasks for _ in (self.lanes if task.how == EACH else (0,))]
        everywhere = [task for task in tasks if task.how == EACH]
        alone = [task for task in tasks if task.how in (ALONE, ALL)]
        others = [task for task in tasks if not task.how]
        with ThreadPoolExecutor(len(self.lanes)) as pool:
            try:
                for lane in self.lanes:  # not side by side: `peak` measures the host and its disk, too
                    self._work_on(pool, [(lane, deque(everywhere))])
                if self.failed:  # what the others rest on
                    return
                self._work_on(pool, [(self.lanes[0], deque(alone))])
                shared = deque(others)
                self._work_on(pool, [(lane, shared) for lane in self.lanes])
            finally:
                self._is_over.set()

    def _work_on(self, pool: ThreadPoolExecutor, works: Sequence[tuple[Lane, deque[Task]]]) -> None:
        begun = [pool.submit(self._work, lane, tasks) for lane, tasks in works]
        while wait(begun, _POLL_S).not_done:  # without a limit, a signal that comes just before the wait would be seen after it
            pass
        for each in begun:
            each.result()

    def _work(self, lane: Lane, tasks: deque[Task]) -> None:
        while tasks:
            try:
                task = tasks.popleft()
            except IndexError:  # another lane took the last one
                return
            if not self._is_over.is_set() and time.monotonic() + task.seconds <= self.deadline:
                self._run(lane, task)

    @property
    def left(self) -> list[Task]:
        """What is not done, and with it what is for every GPU: the clones of another campaign have none of it."""
        if not self._waiting:
            return []
        done = Counter(self._tasks) - Counter(self._waiting)  # a plan may have a command twice
        found = []
        for task in self._tasks:
            if task.how == EACH or not done[task]:
                found.append(task)
            else:
                done[task] -= 1
        return found

    def _run(self, lane: Lane, task: Task) -> None:
        with self._telling:
            self._begun += 1
            number = self._begun
        started, log = time.monotonic(), self.out / f"{number:03}.log"
        variables = lane.variables()
        if task.how == ALL:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpu for each in self.lanes for gpu in each.gpus)
        code = self._code_of(task.command(sys.executable, self.out / f"{number:03}"), lane.tree, variables, log)
        took = time.monotonic() - started
        with self._telling:
            try:
                self.rows += bring_home(lane, self.root)
            except BenchmarkError as error:
                self.failed += 1
                print(f"error: {error}; what GPU {lane.name} accepted stays in {lane.tree}", flush=True)
            if code is not None:
                self._waiting.remove(task)
            ended = "stopped, too late" if code is None else f"exit {code}"
            print(f"{log.name}  GPU {lane.name}  {took:4.0f} s of {task.seconds:g}  {ended}  {task.words}", flush=True)
            if code:
                self.failed += 1
                print("".join(f"    {line}\n" for line in log.read_text(errors="replace").splitlines()[-3:]), end="", flush=True)

    def _code_of(self, command: Sequence[str], tree: Path, variables: Mapping[str, str], log: Path) -> int | None:
        """How it ended; None if it was stopped: it is told once to end, as by Ctrl-C, and killed if it does not."""
        with log.open("wb") as output:
            running = subprocess.Popen(
                command,
                cwd=tree,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while running.poll() is None and time.monotonic() < self.deadline and not self._is_over.is_set():
            time.sleep(_POLL_S)
        if running.poll() is not None:
            return running.returncode
        os.killpg(running.pid, signal.SIGINT)
        try:
            running.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                running.wait(_DEATH_S)
        return None


def expectations_in(tree: Path) -> dict[Path, Expectations]:
    """What is expected in a tree, by the file's path in it."""
    return {path.relative_to(tree): read_expectations(path) for path in sorted(tree.glob("**/expectations_*.json"))}


def clone(source: Path, tree: Path) -> None:
    """A clone of `source`, a checkout or a bundle, at its newest commit. Raises BenchmarkError, naming the flag, where git makes none."""
    done = _git("clone", "-q", str(source), str(tree))
    # A bundle of a branch alone has no HEAD, and of it git checks nothing out.
    if not done.returncode and _git("-C", str(tree), "rev-parse", "-q", "--verify", "HEAD").returncode:
        branches = _git("-C", str(tree), "for-each-ref", "--format=%(refname)", "refs/remotes/origin").stdout.split()
        if len(branches) == 1:
            done = _git("-C", str(tree), "checkout", "-q", "--detach", branches[0])
    if done.returncode or not (tree / "tools/cli/benchmark_cli.py").is_file():
        why = done.stderr.strip().splitlines()[-1:] or ["no benchmark_cli in it"]
        raise BenchmarkError(f"--source {source}: found {why[0]}; expected a checkout or a bundle of this project")


def bring_home(lane: Lane, root: Path) -> list[str]:
    """Put what a lane accepted into the expectations below `root`, and make its clone clean again; which rows, as file, pair and shape.

    What a run accepts says whether its tree differed from the commit, and what the run before accepted would make it differ.
    """
    found = []
    for path, expected in expectations_in(lane.tree).items():
        known = lane.before[path].pairs if path in lane.before else {}
        for pair, shapes in expected.pairs.items():
            accepted = {shape: row for shape, row in shapes.items() if known.get(pair, {}).get(shape) != row}
            if accepted:
                keep_expectations(root / path, pair, accepted)
                found += [f"{path}: {pair} {shape}".rstrip() for shape in accepted]
    for words in (("reset", "-q", "--hard"), ("clean", "-fdq")):  # what git ignores stays: builds, ceilings
        if (done := _git("-C", str(lane.tree), *words)).returncode:
            raise BenchmarkError(f"{lane.tree}: found {done.stderr.strip()}; expected git {words[0]} to clean it")
    return found


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False)


def _parser() -> Arguments:
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a text file, a command a line; # begins a remark")
    parser.add_argument(
        "--minutes",
        type=finite_above_0,
        default=60.0,
        help=f"what still runs then is told to end, and has {_PATIENCE_S:g} s to do so; default 60",
    )
    parser.add_argument(
        "--gpus", default="", help="which, as CUDA_VISIBLE_DEVICES would name them: 0,1; lanes of two: 0+1,2+3; default: all"
    )
    parser.add_argument(
        "--source", type=Path, default=PROJECT_ROOT, help="a checkout or a bundle to clone; default: this project, committed"
    )
    parser.add_argument("--out", type=Path, help=f"a new folder for clones, logs, runs and {LEFT}; default: artifacts/campaign_<time>")
    return parser


@contextmanager
def _held_gpus(names: str) -> Iterator[list[tuple[str, ...]]]:
    """The GPUs of each lane, held against this user's other runs. Raises BenchmarkError where there are none, one twice, or one is held."""
    known = {str(gpu.index): gpu.uuid for gpu in describe_machine(PROJECT_ROOT).gpus}
    lanes = [tuple(name.strip() for name in lane.split(AND)) for lane in (names.split(",") if names else known)]
    if not lanes:
        raise BenchmarkError("found no GPU on this machine; expected one, or --gpus")
    found = [name for lane in lanes for name in lane]
    if not all(found) or len(set(found)) < len(found):
        raise BenchmarkError(f"--gpus {names}: found a GPU twice or one without a name; expected each once, as in 0,1 or 0+1,2+3")
    with ExitStack() as held:
        for uuid in filter(None, map(known.get, found)):
            held.enter_context(lock(uuid, "a campaign"))
        yield lanes


def _share_ceilings(tree: Path, kept: Path) -> None:
    """Have a clone keep ceilings where all do: a command that sees every GPU runs in one clone, and `peak` measured them in each."""
    kept.mkdir(exist_ok=True)
    (tree / "artifacts").mkdir(exist_ok=True)
    (tree / "artifacts/machines").symlink_to(kept)


def _lanes(out: Path, source: Path, gpus: Sequence[tuple[str, ...]]) -> list[Lane]:
    """A clone of `source` a lane, in `out`. Raises BenchmarkError for a folder that is there, and for changes that no clone would have."""
    if source.is_dir() and (changed := _git("-C", str(source), "status", "--porcelain", "--untracked-files=no").stdout.splitlines()):
        raise BenchmarkError(f"{source}: found {len(changed)} files that differ from the last commit; expected a clean tree")
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise BenchmarkError(f"--out {out}: found {error.strerror}; expected a folder that can be made") from error
    trees = [out / f"tree{number}" for number in range(len(gpus))]
    try:
        for tree in trees:
            clone(source, tree)
        lanes = [Lane(gpu, tree, expectations_in(tree)) for gpu, tree in zip(gpus, trees, strict=True)]
        for lane in lanes:
            lane.temporary.mkdir()
            _share_ceilings(lane.tree, out / "machines")
        return lanes
    except BenchmarkError:
        shutil.rmtree(out)
        raise


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Carry out a plan, and put what is accepted below `root`; 0 if every command ended with 0, 1 if one did not or was left."""
    chosen = _parser().parse_args(arguments)
    started = time.monotonic()
    out = (chosen.out or ARTIFACTS / f"campaign_{datetime.now().astimezone():%Y%m%d_%H%M%S}").resolve()
    try:
        tasks = read_plan(chosen.plan)
        with _ended_by_signals(), _held_gpus(chosen.gpus) as gpus:
            campaign = Campaign(_lanes(out, chosen.source.resolve(), gpus), out, root, started + 60 * chosen.minutes)
            _carry_out(campaign, tasks)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    return int(ExitCode.USAGE if campaign.failed or campaign.left else ExitCode.GOOD)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, and SIGINT too where a shell that started this in the background has it ignored."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _carry_out(campaign: Campaign, tasks: Sequence[Task]) -> None:
    """Carry out the tasks, and say what came of them, however they end."""
    try:
        campaign.carry_out(tasks)
    finally:
        write_whole(campaign.out / LEFT, plan_text(campaign.left))
        print("".join(f"accepted {row}\n" for row in campaign.rows), end="")
        rows, left = len(campaign.rows), len(campaign.left)
        print(f"{rows} rows accepted, {campaign.failed} commands failed, {left} left in {campaign.out / LEFT}")


if __name__ == "__main__":
    exit_with(main)
