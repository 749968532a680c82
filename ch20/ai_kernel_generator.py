"""Generate kernels, have the harness judge each, and refine the best: `python ch20/ai_kernel_generator.py ch20:ai_kernel_generator`.

Offline, it starts from the pair's baseline, a .cu file with lines such as `constexpr int KEPT = 0;  // tries: 0 1 2 4`. In a file without
such lines each `constexpr int` that is a power of two may be any other, up to 8 times larger or smaller. A local search takes the best
kernel so far and changes one constant.

With `--provider openai` or `--provider anthropic` a language model proposes whole sources, of a .cu or a .py baseline. It is told the
workload, the best source so far, and what the harness said of the last attempts. `--dry-run` prints the first prompt and asks nobody.
`--tokens` limits all prompts and answers of the search. The key is in OPENAI_API_KEY or ANTHROPIC_API_KEY.

A candidate is a pair of its own, in a folder of its own, whose baseline is the kernel that the search starts from. `benchmark_cli run`
builds, checks and times it, so a fast kernel with a wrong answer is refused. Every attempt is kept: its prompt, its source, and what the
harness said of it. attempts.html shows their lineage and the best time by attempt. At last the best one is timed beside the pair's
optimized side, if that is a file of the same kind. attempts.json, committed beside this file as search_<chapter>_<name>_<gpu>.json,
becomes a line of the README's table.

A candidate is built, checked and timed in a sandbox: no network, files written in its own folder alone, no signal to other processes, a
limit of memory and one of time. What it leaves running is ended. Where the kernel or a container refuses such a sandbox the search says
so and ends; `--allow network,files` goes on without these. Nothing keeps a candidate from reading files.
"""

import argparse
import json
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
from shared_asking import Asker, asked_search, service_from
from shared_attempt import START, Attempt
from shared_attempts_page import page
from shared_prompt import prompt

from common.python.command import finite_above_0
from common.python.errors import BenchmarkError
from common.python.machine.description import describe_machine, lock
from common.python.pairs.sources import with_imports
from common.python.processes.sandbox import RESTRICTIONS, Limits, require_sandbox, run_in_sandbox
from common.python.report.llm import tokens_of

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
    """Up to `attempts` attempts, as they are judged; judge(number, source) returns status, reason, speedup over the start, ends and time.

    The next ones start from an attempt whose whole interval lies above the best speedup so far: noise is no gain.
    """
    choices, best = choices_of(source), replace(START, constants=constants_of(source))
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
        """Status, reason, speedup, the ends of its interval and the time in ns of the pair in `folder`, which ran in a sandbox."""
        asked = ["run", "--root", str(folder), "--targets", f"kernels:{name}", "--artifacts-dir", str(folder / "run"), "--json"]
        with lock(self.holds, "ai_kernel_generator.py", PATIENCE_S):
            ended = run_in_sandbox(BENCHMARK_CLI, [*asked, *self.options], folder, self.limits)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        if ended.broke:
            return "ERROR", f"its processes {ended.broke}; expected to end by themselves"
        if ended.code < 0:
            return "ERROR", f"signal {-ended.code} ended the harness; expected a verdict"
        try:
            (row,) = (row for row in json.loads(ended.stdout)["rows"] if row["target"].endswith(f":{name}"))
        except (ValueError, KeyError):
            return "ERROR", (ended.stderr or ended.stdout).strip()[-500:] or f"exit code {ended.code}"
        reason = row["reason"].replace(f"{folder.parent}/", "")  # as in the folder of all attempts
        for timing in row["timings"].values():
            speedup = timing["speedups"]["optimized"]
            return row["status"], reason, *(speedup[end] for end in ENDS), timing["time_ns"]["optimized"]["estimate"]
        return row["status"], reason


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


def start_of(target, offline=True):
    """The pair of a target. Exits with a sentence where the search has nothing to change."""
    chapter, _, name = target.partition(":")
    pairs = [Pair(ROOT / chapter, name, suffix) for suffix in ((".cu",) if offline else (".cu", ".py"))]
    pair = next((each for each in pairs if each.source() is not None), None)
    if pair is None:
        kind = "a CUDA baseline" if offline else "a baseline"
        sys.exit(f"ai_kernel_generator.py: found no {chapter}/baseline_{name}.cu; expected a target with {kind}, as chNN:name")
    if offline and not constants_of(pair.source()):
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


def asker_of(choices):
    """Whom to ask for sources; None offline. Exits with a sentence where no key is set."""
    if choices.provider == "offline":
        return None
    service = service_from(choices.provider, choices.base_url, choices.model)
    if service is None:
        sys.exit(f"--provider {choices.provider}: found no {choices.provider.upper()}_API_KEY in the environment; expected the key")
    return Asker(service, choices.tokens)


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
    parser.add_argument("--provider", choices=("offline", "openai", "anthropic"), default="offline", help="who proposes sources")
    parser.add_argument("--base-url", help="of the service; default: OPENAI_BASE_URL or ANTHROPIC_BASE_URL, or the company's own")
    parser.add_argument("--model", help="its name; default: OPENAI_MODEL or ANTHROPIC_MODEL, or one that this file's library knows")
    parser.add_argument("--tokens", type=int, default=200_000, help="of all prompts and answers of the search, at most")
    parser.add_argument("--dry-run", action="store_true", help="print the first prompt, and ask nobody")
    return parser


def attempts_of(choices, pair, harness, asker):
    """The attempts of the search that the command line wants, each with its files."""
    out, source = choices.out.resolve(), pair.source()
    judge = judge_of(pair, out, harness)
    found = asked_search(pair, judge, asker, choices.attempts, out) if asker else search(source, judge, choices.attempts)
    started = time.monotonic()
    for attempt in found:
        yield attempt.kept(out, time.monotonic() - started)
        started = time.monotonic()


def main():
    """Search, print a line an attempt, and keep all of them in attempts.json."""
    choices = arguments().parse_args()
    pair = start_of(choices.target, choices.provider == "offline")
    if choices.dry_run:
        print(text := prompt(pair, START, pair.source(), []))
        print(f"about {tokens_of(text)} tokens; nobody was asked", file=sys.stderr)
        return
    if choices.out.exists():
        sys.exit(f"--out: found {choices.out}; expected a folder that does not exist yet")
    asker, harness = asker_of(choices), harness_of(choices)
    choices.out.mkdir(parents=True)
    start, made, out = constants_of(pair.source()), [], choices.out.resolve()
    print(f"{choices.target} starts from {start}", flush=True)
    for attempt in attempts_of(choices, pair, harness, asker):
        made.append(attempt)
        told = {"target": choices.target, "start": start, "attempts": [asdict(each) for each in made]}
        told |= {"model": asker.service.model, "tokens": choices.tokens - asker.left} if asker else {}
        (out / "attempts.json").write_text(json.dumps(told | {"origin": origin_of(out)}, indent=1))
        (out / "attempts.html").write_text(page(choices.target, made))
        words = f"{attempt.status:12} {attempt.speedup:6.3f}x  {attempt.constants or attempt.source}  {attempt.reason}"
        print(f"{attempt.number:3} of {attempt.parent:3}  {words}", flush=True)
    if asker:
        ended = ", and the next prompt does not fit" if asker.full else ""
        print(f"{choices.tokens - asker.left} of {choices.tokens} tokens are spent{ended}", flush=True)
    accepted = [attempt for attempt in made if attempt.status == "PASSED"]
    if not accepted:
        sys.exit(f"no candidate of {len(made)} was accepted; {choices.out}/attempts.json says why")
    best = max(accepted, key=lambda attempt: attempt.speedup)
    print(f"best: attempt {best.number}, {best.speedup:.3f}x as fast as the start: {best.constants or best.source}", flush=True)
    if found := beside_hand_written(pair, out, (out / best.source).read_text(), harness):
        status, reason, *ends = found
        words = f"{ends[0]:.3f}x [{ends[1]:.3f}, {ends[2]:.3f}] as fast" if status == "PASSED" else f"{status}: {reason}"
        print(f"beside the pair's optimized side: {words}")
        if status == "PASSED":
            beside = dict(zip(ENDS, ends[:3], strict=True))
            (out / "attempts.json").write_text(json.dumps(told | {"origin": origin_of(out), "beside_hand_written": beside}, indent=1))


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        sys.exit(f"ai_kernel_generator.py: {error}")
