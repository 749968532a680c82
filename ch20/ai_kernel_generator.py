"""Generate kernels, have the harness judge each, and refine the best: `python ch20/ai_kernel_generator.py ch20:ai_kernel_generator`.

It starts from the pair's baseline, a .cu file with lines such as `constexpr int KEPT = 0;  // tries: 0 1 2 4`. In a file without such
lines each `constexpr int` that is a power of two may be any other, up to 8 times larger or smaller. The proposer is a local search, not a
language model: it takes the best kernel so far and changes one constant. A candidate is a pair of its own, in a folder of its own, whose
baseline is the kernel that the search starts from. `benchmark_cli run` builds, checks and times it, so a fast kernel with a wrong answer
is refused. Every attempt is kept, with what the harness said of it; attempts.html shows their lineage and the best time by attempt. At
last the best one is timed beside the pair's optimized side, if that is a .cu file. A candidate runs as any other side does: not in a
sandbox. attempts.json, committed beside this file as search_<chapter>_<name>_<gpu>.json, becomes a line of the README's table.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from shared_attempts_page import page

ROOT = Path(__file__).resolve().parents[1]
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


def judged(folder, name, device, *options):
    """Status, reason, speedup and the ends of its interval of the pair in `folder`, by the harness."""
    artifacts = folder / "run"
    command = [sys.executable, str(ROOT / "tools/cli/benchmark_cli.py"), "run", "--root", str(folder), "--device", device, *options]
    found = subprocess.run([*command, "--artifacts-dir", str(artifacts), "--json"], capture_output=True, text=True, check=False)
    try:
        (row,) = (row for row in json.loads(found.stdout)["rows"] if row["target"].endswith(f":{name}"))
    except (ValueError, KeyError):
        return "ERROR", (found.stderr or found.stdout).strip()[-500:], 0.0, 0.0, 0.0
    timings = list(row["timings"].values())
    speedup = timings[0]["speedups"]["optimized"] if timings else dict.fromkeys(ENDS, 0.0)
    reason = row["reason"].replace(f"{folder.parent}/", "")  # as in the folder of all attempts
    return row["status"], reason, *(speedup[end] for end in ENDS)


def written(pair, name, folder, baseline, optimized):
    """`folder`, which is made, with a pair of these two sources, of the workload in folder `pair`."""
    kernels = folder / "kernels"
    kernels.mkdir(parents=True)
    for file in (pair / f"workload_{name}.py", *pair.glob("shared_*")):
        if file.is_file():
            shutil.copy(file, kernels)
    (kernels / f"baseline_{name}.cu").write_text(baseline)
    (kernels / f"optimized_{name}.cu").write_text(optimized)
    return folder


def judge_of(pair, name, out, device, *options):
    """A judge that writes candidates of the pair in folder `pair` under `out` and asks the harness."""
    start = (pair / f"baseline_{name}.cu").read_text()
    return lambda number, source: judged(written(pair, name, out / f"attempt_{number:03}", start, source), name, device, *options)


def beside_hand_written(pair, name, out, source, device, *options):
    """What the harness says of `source` beside the pair's optimized side, as `judged`; None if that is no .cu file."""
    hand_written = pair / f"optimized_{name}.cu"
    if not hand_written.is_file():
        return None
    plain = CLAIMED.sub("", hand_written.read_text())  # its claims are of the pair that it was written for
    return judged(written(pair, name, out / "beside_hand_written", plain, source), name, device, *options)


def origin_of(out):
    """Where the attempts in `out` were made, as their metrics.json say: GPUs, versions and commit."""
    for metrics in sorted(out.glob("*/run/metrics.json")):
        for row in json.loads(metrics.read_text())["rows"]:
            return row["origin"]
    return None


def start_of(target):
    """Folder, name and baseline's source of a target. Exits with a sentence where the search has nothing to change."""
    chapter, _, name = target.partition(":")
    baseline = ROOT / chapter / f"baseline_{name}.cu"
    if not baseline.is_file():
        sys.exit(f"ai_kernel_generator.py: found no {chapter}/baseline_{name}.cu; expected a target with a CUDA baseline, as chNN:name")
    source = baseline.read_text()
    if not constants_of(source):
        sys.exit(f"ai_kernel_generator.py: found no constant in {baseline.name}; expected `constexpr int NAME = 4;` or `// tries: 1 2 4`")
    return baseline.parent, name, source


def main():
    """Search, print a line an attempt, and keep all of them in attempts.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="ch20:ai_kernel_generator", help="chNN:name, a pair with a CUDA baseline")
    parser.add_argument("--attempts", type=int, default=16, help="candidates at most")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="as for benchmark_cli run")
    parser.add_argument("--iterations", type=int, help="as for benchmark_cli run; default: until the interval is narrow")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "ai_kernel_generator", help="an absent folder, for all attempts")
    choices = parser.parse_args()
    folder, name, source = start_of(choices.target)
    if choices.out.exists():
        sys.exit(f"--out: found {choices.out}; expected a folder that does not exist yet")
    choices.out.mkdir(parents=True)
    asked = (choices.device, *([] if choices.iterations is None else ["--iterations", str(choices.iterations)]))
    print(f"{choices.target} starts from {constants_of(source)}", flush=True)
    made, out = [], choices.out.resolve()
    for attempt in search(source, judge_of(folder, name, out, *asked), choices.attempts):
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
    if found := beside_hand_written(folder, name, out, with_constants(source, best.constants), *asked):
        status, reason, speedup, low, high = found
        words = f"{speedup:.3f}x [{low:.3f}, {high:.3f}] as fast" if status == "PASSED" else f"{status}: {reason}"
        print(f"beside the pair's optimized side: {words}")
        if status == "PASSED":
            beside = dict(zip(ENDS, (speedup, low, high), strict=True))
            (out / "attempts.json").write_text(json.dumps(told | {"origin": origin_of(out), "beside_hand_written": beside}, indent=1))


if __name__ == "__main__":
    main()
