"""Generate kernels, have the harness judge each, and refine the best: `python ch20/ai_kernel_generator.py ch20:ai_kernel_generator`.

It starts from the pair's baseline, a .cu file with lines such as `constexpr int KEPT = 0;  // tries: 0 1 2 4`. The proposer is a local
search, not a language model: it takes the best kernel so far and changes one constant. A candidate is a pair of its own, in a folder of its
own, whose baseline is the kernel that the search starts from. `benchmark_cli run` builds, checks and times it, so a fast kernel with a
wrong answer is refused. Every attempt is kept, with what the harness said of it; attempts.html shows their lineage and the best time by
attempt. A candidate runs as any other side does: not in a sandbox.
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
SPACE = re.compile(r"^(constexpr int (\w+) = )(\d+)(; +// tries: ([\d ]+))$", re.MULTILINE)


@dataclass(frozen=True)
class Attempt:
    """A candidate: its constants by name, the number of its parent, the harness's status and reason, and the speedup over the start."""

    number: int
    parent: int
    constants: dict[str, int]
    status: str
    reason: str = ""
    speedup: float = 0.0


def constants_of(source):
    """The constants that a source offers for change, by name."""
    return {match[2]: int(match[3]) for match in SPACE.finditer(source)}


def choices_of(source):
    """The values to try, by name of the constant."""
    return {match[2]: [int(value) for value in match[5].split()] for match in SPACE.finditer(source)}


def with_constants(source, constants):
    """`source` with other values of these constants."""
    return SPACE.sub(lambda match: f"{match[1]}{constants[match[2]]}{match[4]}", source)


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
    """Up to `attempts` attempts, as they are judged; judge(number, source) returns status, reason and speedup over the start."""
    choices, best = choices_of(source), Attempt(0, 0, constants_of(source), "PASSED", "the start", 1.0)
    tried = [best.constants]
    for number in range(1, attempts + 1):
        constants = propose(choices, best.constants, tried)
        if constants is None:
            return
        tried.append(constants)
        attempt = Attempt(number, best.number, constants, *judge(number, with_constants(source, constants)))
        yield attempt
        if attempt.status == "PASSED" and attempt.speedup > best.speedup:
            best = attempt


def judged(folder, name, device):
    """Status, reason and speedup of the pair in `folder`, by the harness."""
    artifacts = folder / "run"
    command = [sys.executable, str(ROOT / "tools/cli/benchmark_cli.py"), "run", "--root", str(folder), "--device", device]
    found = subprocess.run([*command, "--artifacts-dir", str(artifacts), "--json"], capture_output=True, text=True, check=False)
    try:
        (row,) = (row for row in json.loads(found.stdout)["rows"] if row["target"].endswith(f":{name}"))
    except (ValueError, KeyError):
        return "ERROR", (found.stderr or found.stdout).strip()[-500:], 0.0
    timings = list(row["timings"].values())
    return row["status"], row["reason"], timings[0]["speedups"]["optimized"]["estimate"] if timings else 0.0


def judge_of(pair, name, out, device):
    """A judge that writes candidates of the pair in folder `pair` under `out` and asks the harness."""

    def judge(number, source):
        folder = out / f"attempt_{number:03}" / "kernels"
        folder.mkdir(parents=True)
        for file in (pair / f"workload_{name}.py", pair / f"baseline_{name}.cu", *pair.glob("shared_*.cuh")):
            shutil.copy(file, folder)
        (folder / f"optimized_{name}.cu").write_text(source)
        return judged(folder.parent, name, device)

    return judge


def start_of(target):
    """Folder, name and baseline's source of a target. Exits with a sentence where the search has nothing to change."""
    chapter, _, name = target.partition(":")
    baseline = ROOT / chapter / f"baseline_{name}.cu"
    if not baseline.is_file():
        sys.exit(f"ai_kernel_generator.py: found no {chapter}/baseline_{name}.cu; expected a target with a CUDA baseline, as chNN:name")
    source = baseline.read_text()
    if not constants_of(source):
        sys.exit(f"ai_kernel_generator.py: found no constant in {baseline.name}; expected `constexpr int NAME = 1;  // tries: 1 2 4`")
    return baseline.parent, name, source


def main():
    """Search, print a line an attempt, and keep all of them in attempts.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="ch20:ai_kernel_generator", help="chNN:name, a pair with a CUDA baseline")
    parser.add_argument("--attempts", type=int, default=16, help="candidates at most")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="as for benchmark_cli run")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "ai_kernel_generator", help="an absent folder, for all attempts")
    choices = parser.parse_args()
    folder, name, source = start_of(choices.target)
    if choices.out.exists():
        sys.exit(f"--out: found {choices.out}; expected a folder that does not exist yet")
    choices.out.mkdir(parents=True)
    made = []
    for attempt in search(source, judge_of(folder, name, choices.out.resolve(), choices.device), choices.attempts):
        made.append(attempt)
        (choices.out / "attempts.json").write_text(json.dumps([asdict(each) for each in made], indent=1))
        (choices.out / "attempts.html").write_text(page(choices.target, made))
        print(
            f"{attempt.number:3} of {attempt.parent:3}  {attempt.status:12} {attempt.speedup:6.3f}x  {attempt.constants}  {attempt.reason}"
        )
    accepted = [attempt for attempt in made if attempt.status == "PASSED"]
    if not accepted:
        sys.exit(f"no candidate of {len(made)} was accepted; {choices.out}/attempts.json says why")
    best = max(accepted, key=lambda attempt: attempt.speedup)
    print(f"best: attempt {best.number}, {best.speedup:.3f}x of the start: {best.constants}")


if __name__ == "__main__":
    main()
