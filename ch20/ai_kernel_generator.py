"""Generate kernels, have the harness judge each, and refine the best: `python ch20/ai_kernel_generator.py ch20:ai_kernel_generator`.

It starts from the pair's baseline, a .cu file with lines such as `constexpr int KEPT = 0;  // tries: 0 1 2 4`. In a file without such
lines each `constexpr int` that is a power of two may be any other, up to 8 times larger or smaller. The proposer is a local search, not a
language model: it takes the best kernel so far and changes one constant. A candidate is a pair of its own, in a folder of its own, whose
baseline is the kernel that the search starts from. `benchmark_cli run` builds, checks and times it, so a fast kernel with a wrong answer
is refused. Every attempt is kept, with what the harness said of it; attempts.html shows their lineage and the best time by attempt. At
last the best one is timed beside the pair's optimized side, if that is a file of the same kind. attempts.json, committed beside this
file as search_<chapter>_<name>_<gpu>.json, becomes a line of the README's table.

A candidate is built, checked and timed in a sandbox: no network, files written in its own folder alone, no signal to other processes, a
limit of memory and one of time. What it leaves running is ended. Where the kernel or a container refuses such a sandbox the search says
so and ends; `--allow network,files` goes on without these. Nothing keeps a candidate from reading files.
"""

import argparse
import json
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from shared_attempts_page import page

from common.python.command import finite_above_0
from common.python.errors import BenchmarkError
from common.python.machine.description import describe_machine, lock
from common.python.pairs.sources import with_imports
from common.python.processes.sandbox import RESTRICTIONS, Limits, require_sandbox, run_in_sandbox

ROOT = Path(__file__).resolve().parents[1]
BENCHMARK_CLI = ROOT / "tools/cli/benchmark_cli.py"
PATIENCE_S = 3600.0  # for another run that has the machine
TRIES = re.compile(r"^constexpr int (\w+) = \d+; +// tries: ([\d ]+)$", re.MULTILINE)
DECLARED = re.compile(r"^constexpr int [^;\n]*;", re.MULTILINE)
VALUE = re.compile(r"(?P<before>\b(?P<name>\w+) = )(?P<value>\d+)(?=[,;])")
FURTHEST = 3  # doublings, where a source does not say what to try
MOST = 1024  # the threads of a block, and more than most tiles
ENDS = ("estimate", "low", "high")
CLAIMED = re.compile(r"^// (proves|has|predicts|expects|guess):.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Attempt:
    """A candidate: its constants by name, the number of its parent, the harness's status and reason, and the speedup over the start.

    `low` and `high` are the ends of the speedup's 95 % interval.
    """

    number: int
    parent: int
    constants: dict[str, int]
    status: str
    reason: str = ""
    speedup: float = 0.0
    low: float = 0.0
    high: float = 0.0


def constants_of(source):
    """The constants that a source offers for change, by name."""
    told = {match[1] for match in TRIES.finditer(source)}
    declared = (found for line in DECLARED.findall(source) for found in VALUE.finditer(line))
    values = {found["name"]: int(found["value"]) for found in declared}
    return {name: value for name, value in values.items() if (name in told if told else value.bit_count() == 1)}


def choices_of(source):
    """The values to try, by name of the constant: those that the source tells, or powers of two around its own, rising."""
    told = {match[1]: [int(value) for value in match[2].split()] for match in TRIES.finditer(source)}
    return told or {name: _powers_around(value) for name, value in constants_of(source).items()}


def _powers_around(value):
    at = value.bit_length() - 1
    return [2**power for power in range(max(0, at - FURTHEST), at + FURTHEST + 1) if 2**power <= max(MOST, value)]


def with_constants(source, constants):
    """`source` with other values of these constants."""

    def changed(line):
        return VALUE.sub(lambda found: f"{found['before']}{constants.get(found['name'], found['value'])}", line[0])

    return DECLARED.sub(changed, source)


def propose(choices, best, tried):
    """The next constants: `best` with one of them changed, the nearest value first; None when each neighbour has been tried."""
    for distance in range(1, max(map(len, choices.values()), default=0)):
        for name, values in choices.items():
            at = values.index(best[name])
            for to in (at + distance, at - distance):
                changed = {**best, name: values[to]} if 0 <= to < len(values) else best
                if changed not in tried:
                    return changed
    return None


def search(source, judge, attempts):
    """Up to `attempts` attempts, as they are judged; judge(number, source) returns status, reason, speedup over the start, and its ends.

    The next ones start from an attempt whose whole interval lies above the best speedup so far: noise is no gain.
    """
    choices, best = choices_of(source), Attempt(0, 0, constants_of(source), "PASSED", "the start", 1.0, 1.0, 1.0)
    tried = [best.constants]
    for number in range(1, attempts + 1):
        constants = propose(choices, best.constants, tried)
        if constants is None:
            return
        tried.append(constants)
        attempt = Attempt(number, best.number, constants, *judge(number, with_constants(source, constants)))
        yield attempt
        if attempt.status == "PASSED" and attempt.low > best.speedup:
            best = attempt


@dataclass(frozen=True)
class Pair:
    """A pair whose baseline a search starts from: its folder, its name, and what its sides are written in, ".cu" or ".py"."""

    folder: Path
    name: str
    suffix: str = ".cu"

    def source(self, side="baseline"):
        """The text of a side; None where it is not there in this language."""
        file = self.folder / f"{side}_{self.name}{self.suffix}"
        return file.read_text() if file.is_file() else None

    def written(self, folder, baseline, optimized):
        """`folder`, which is made, with a pair of these two sources, of this pair's workload."""
        kernels = folder / "kernels"
        kernels.mkdir(parents=True)
        for file in self._needed():
            shutil.copy(file, kernels)
        (kernels / f"baseline_{self.name}{self.suffix}").write_text(baseline)
        (kernels / f"optimized_{self.name}{self.suffix}").write_text(optimized)
        return folder

    def _needed(self):
        """The files of a candidate that are no sides of it. A workload that this one imports needs sides too: they are never run."""
        workloads = with_imports(self.folder / f"workload_{self.name}.py")
        yield from {*workloads, *filter(Path.is_file, self.folder.glob("shared_*"))}
        for name in (file.stem.removeprefix("workload_") for file in workloads[1:] if file.stem.startswith("workload_")):
            for side in ("baseline", "optimized"):
                exact, variants = (sorted(self.folder.glob(f"{side}_{name}{rest}")) for rest in (".*", "_*"))
                yield from (exact or variants)[:1]


@dataclass(frozen=True)
class Harness:
    """How it judges: the options of `benchmark_cli run`, the name of the lock that a run outside a sandbox takes, and limits."""

    options: tuple[str, ...]
    holds: str
    limits: Limits

    def judged(self, folder, name):
        """Status, reason, speedup and the ends of its interval of the pair in `folder`, which ran in a sandbox."""
        asked = ["run", "--root", str(folder), "--targets", f"kernels:{name}", "--artifacts-dir", str(folder / "run"), "--json"]
        with lock(self.holds, "ai_kernel_generator.py", PATIENCE_S):
            ended = run_in_sandbox(BENCHMARK_CLI, [*asked, *self.options], folder, self.limits)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        if ended.broke:
            return "ERROR", f"its processes {ended.broke}; expected to end by themselves", 0.0, 0.0, 0.0
        if ended.code < 0:
            return "ERROR", f"signal {-ended.code} ended the harness; expected a verdict", 0.0, 0.0, 0.0
        try:
            (row,) = (row for row in json.loads(ended.stdout)["rows"] if row["target"].endswith(f":{name}"))
        except (ValueError, KeyError):
            return "ERROR", (ended.stderr or ended.stdout).strip()[-500:] or f"exit code {ended.code}", 0.0, 0.0, 0.0
        timings = list(row["timings"].values())
        speedup = timings[0]["speedups"]["optimized"] if timings else dict.fromkeys(ENDS, 0.0)
        reason = row["reason"].replace(f"{folder.parent}/", "")  # as in the folder of all attempts
        return row["status"], reason, *(speedup[end] for end in ENDS)


def judge_of(pair, out, harness):
    """A judge that writes candidates of the pair under `out` and asks the harness."""
    start = pair.source()
    return lambda number, source: harness.judged(pair.written(out / f"attempt_{number:03}", start, source), pair.name)


def beside_hand_written(pair, out, source, harness):
    """What the harness says of `source` beside the pair's optimized side; None if that is written in another language."""
    hand_written = pair.source("optimized")
    if hand_written is None:
        return None
    plain = CLAIMED.sub("", hand_written)  # its claims are of the pair that it was written for
    return harness.judged(pair.written(out / "beside_hand_written", plain, source), pair.name)


def origin_of(out):
    """Where the attempts in `out` were made, as their metrics.json say: GPUs, versions and commit."""
    for metrics in sorted(out.glob("*/run/metrics.json")):
        for row in json.loads(metrics.read_text())["rows"]:
            return row["origin"]
    return None


def start_of(target):
    """The pair of a target. Exits with a sentence where the search has nothing to change."""
    chapter, _, name = target.partition(":")
    pair = Pair(ROOT / chapter, name)
    if (source := pair.source()) is None:
        sys.exit(f"ai_kernel_generator.py: found no {chapter}/baseline_{name}.cu; expected a target with a CUDA baseline, as chNN:name")
    if not constants_of(source):
        found = f"found no constant in baseline_{name}.cu"
        sys.exit(f"ai_kernel_generator.py: {found}; expected `constexpr int NAME = 4;` or `// tries: 1 2 4`")
    return pair


def harness_of(choices):
    """The harness as the command line wants it. Exits with a sentence where the sandbox that it wants cannot be had."""
    unknown = [name for name in choices.allow if name not in RESTRICTIONS]
    if unknown:
        sys.exit(f"--allow: found {', '.join(unknown)}; expected some of {','.join(RESTRICTIONS)}")
    limits = Limits(int(choices.memory * 2**30), choices.seconds, tuple(choices.allow))
    try:
        require_sandbox(limits)
    except BenchmarkError as error:
        sys.exit(f"ai_kernel_generator.py: {error}, or `--allow` of what may go without: network,files,signals")
    gpus = describe_machine(ROOT).gpus if choices.device != "cpu" else ()
    options = ("--device", choices.device, *([] if choices.iterations is None else ["--iterations", str(choices.iterations)]))
    return Harness(options, gpus[0].uuid if gpus else "cpu", limits)


def arguments():
    """What the command line offers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="ch20:ai_kernel_generator", help="chNN:name, a pair with a CUDA baseline")
    parser.add_argument("--attempts", type=int, default=16, help="candidates at most")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="as for benchmark_cli run")
    parser.add_argument("--iterations", type=int, help="as for benchmark_cli run; default: until the interval is narrow")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "ai_kernel_generator", help="an absent folder, for all attempts")
    half = psutil.virtual_memory().total / 2**31
    parser.add_argument("--seconds", type=finite_above_0, default=900.0, help="that building and judging a candidate may take")
    parser.add_argument("--memory", type=finite_above_0, default=half, help="of the host, in GiB, for all processes of a candidate")
    parser.add_argument(
        "--allow", type=lambda text: text.split(","), default=[], help=f"restrictions to leave out: {','.join(RESTRICTIONS)}"
    )
    return parser


def main():
    """Search, print a line an attempt, and keep all of them in attempts.json."""
    choices = arguments().parse_args()
    pair = start_of(choices.target)
    if choices.out.exists():
        sys.exit(f"--out: found {choices.out}; expected a folder that does not exist yet")
    harness, source = harness_of(choices), pair.source()
    choices.out.mkdir(parents=True)
    print(f"{choices.target} starts from {constants_of(source)}", flush=True)
    made, out = [], choices.out.resolve()
    for attempt in search(source, judge_of(pair, out, harness), choices.attempts):
        made.append(attempt)
        told = {"target": choices.target, "start": constants_of(source), "attempts": [asdict(each) for each in made]}
        (out / "attempts.json").write_text(json.dumps(told | {"origin": origin_of(out)}, indent=1))
        (choices.out / "attempts.html").write_text(page(choices.target, made))
        print(
            f"{attempt.number:3} of {attempt.parent:3}  {attempt.status:12} {attempt.speedup:6.3f}x  {attempt.constants}  {attempt.reason}",
            flush=True,
        )
    accepted = [attempt for attempt in made if attempt.status == "PASSED"]
    if not accepted:
        sys.exit(f"no candidate of {len(made)} was accepted; {choices.out}/attempts.json says why")
    best = max(accepted, key=lambda attempt: attempt.speedup)
    print(f"best: attempt {best.number}, {best.speedup:.3f}x as fast as the start: {best.constants}", flush=True)
    if found := beside_hand_written(pair, out, with_constants(source, best.constants), harness):
        status, reason, speedup, low, high = found
        words = f"{speedup:.3f}x [{low:.3f}, {high:.3f}] as fast" if status == "PASSED" else f"{status}: {reason}"
        print(f"beside the pair's optimized side: {words}")
        if status == "PASSED":
            beside = dict(zip(ENDS, (speedup, low, high), strict=True))
            (out / "attempts.json").write_text(json.dumps(told | {"origin": origin_of(out), "beside_hand_written": beside}, indent=1))


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        sys.exit(f"ai_kernel_generator.py: {error}")
