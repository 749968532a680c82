"""The pipelines of chapter 10 on a GPU, without one of their waits at a time, and with random delays in their roles: what goes wrong.

    python -m tests.ch10.without_a_wait wgmma_triple_overlap --build-only      # slow, and needs no GPU
    python -m tests.ch10.without_a_wait wgmma_triple_overlap [--sanitize]      # on a GPU; what was built is not built again

A wait without which all runs are right has SURVIVED; the side with all its waits, and the same delays, must be right too, before the
others and after them. Predictions stand below. They were written before anything was measured.
"""

import argparse
import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from common.python.build.nvcc import build
from common.python.build.sass import Unreadable, read_code
from common.python.child.sides.loader import load_workload
from common.python.errors import SideFailure
from common.python.machine.description import child_environment, describe_machine
from common.python.profile.sanitizers import findings_in
from common.python.profile.tools import ToolFailed, run, tool
from tests.ch10.emulated import CHAPTER
from tests.ch10.mutants import Wait, waits_of, write
from tests.support.teeth import ROOT

TARGETS = (
    "wgmma_triple_overlap",
    "warp_spec_pingpong",
    "warp_specialized_pipeline",
    "cluster_multicast",
    "persistent_matmul",
    "matmul",
)
RUNS, PATIENCE_S, LIMIT_S, AT_ONCE = 20, 2.0, 60.0, 4
SHAPES = {
    # The widest tiles but a ladder's are 128 x 192: 288 of them, two and more an SM, of 32 steps, so that a ring of 4 goes round 8 times.
    "deep": {"m": 2048, "n": 3456, "k": 2048},
    "edges": {"m": 2300, "n": 2120, "k": 1096},  # 18 steps, tiles that end outside
    "shallow": {"m": 4096, "n": 4104, "k": 136},  # 704 tiles or more of 3 steps, fewer than a ring has stages
}
FOR_PRODUCTS = ("products", "sums")  # kinds of waits that ptxas may put back
SANITIZERS, SANITIZED_RUNS, SANITIZED_PATIENCE_S, SANITIZED_LIMIT_S = ("racecheck", "memcheck", "synccheck"), 2, 60.0, 300.0
SANITIZED = {"small": {"m": 2176, "n": 2176, "k": 456}}  # 204 tiles or more of 8 steps

# The waits that are expected to survive, by their lines; all others are expected to be missed. Where a line has no machine code of its
# own, that is found when it is built, and not predicted.
_RESTORED = "ptxas puts it back, as it sees that sums are in flight"
_A_STEP_BEHIND = "a stage given back too early is filled 700 cycles later, and products are not that far behind unless many are queued"
_ONE_WAVE = "no other block gets the shared memory of this one before the grid has ended"
SURVIVORS = {
    "barrier_wait(&shared.consumed[at.stage], at.parity ^ 1);": "is for tensor memory's commits; who arrives here has not ended",
    "show_to_async_proxy();": "the ISA asks for it, but the barrier that follows waits for the same writes to the same memory",
    "__syncwarp();": "nothing follows where sums are registers",
    "if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();": _ONE_WAVE,
    "wgmma_fence();": _RESTORED,
    "wgmma_wait<0>();": _RESTORED,
    "wgmma_wait<1>();": _A_STEP_BEHIND,
    "show_barriers_to_cluster();": "the cluster's barrier that follows releases it too",
    "__threadfence();": "sums reach the L2 before a flag has been there and back",
}


@dataclass(frozen=True)
class Mutant:
    """A side that was built without one of its waits. `restored`: ptxas has put as many in, which it may where it sees sums in flight."""

    wait: Wait
    source: Path
    library: Path
    same_code: bool
    restored: bool


@dataclass(frozen=True)
class Outcome:
    """What became of one library, and in which run: SURVIVED, WRONG_RESULT, TIMEOUT, CRASHED, SANITIZER or NO_CODE."""

    found: str
    run: int = 0
    shape: str = ""
    note: str = ""
    gpu: str = ""
    findings: dict = field(default_factory=dict)


# --- ahead, without a GPU


def made(target, folder, wait=None, cache=None):
    """The side without `wait`, in a folder of its own, built into `cache` or beside it: its source, and what became of it."""
    name = "control" if wait is None else wait.place.replace(":", "_").replace(".", "_")
    source = write(f"optimized_{target}.cu", folder / target / name, wait)
    built = build(source, ["90a"], cache=cache or folder / target / "libraries", root=source.parent)
    read_code(built.library)  # keeps what it finds; here others are read at the same time
    return source, built


def for_products(library):
    """How many instructions of a library wait for products, or order sums before them."""
    return sum(instruction.startswith("WARPGROUP.") for kernel in read_code(library) for instruction in kernel.instructions)


def build_all(target, folder, jobs):
    """The control's source and library, and every mutant. Raises SideFailure or Unreadable where one cannot be built or read."""
    source, built = made(target, folder)
    if "serialized" in built.log:
        raise Unreadable(f"{source.name}: ptxas waits after each product; expected delays that leave products as they are")
    waits = waits_of(source.name)
    with ThreadPoolExecutor(jobs) as pool:
        others = list(pool.map(partial(made, target, folder), waits))
    mutants = [
        Mutant(
            wait,
            path,
            other.library,
            same_code=read_code(other.library) == read_code(built.library),
            restored=wait.kind in FOR_PRODUCTS and for_products(other.library) >= for_products(built.library),
        )
        for wait, (path, other) in zip(waits, others, strict=True)
    ]
    return (source, built.library), mutants


# --- on a GPU


def cluster_of(target):
    """The clusterDim that the target is timed with, as an entry of a shape; nothing where it has no clusters."""
    (cluster,) = {shape.get("clusterDim") for shape in load_workload(CHAPTER / f"workload_{target}.py").timed_shapes.values()}
    return {} if cluster is None else {"clusterDim": cluster}


def job_of(target, source, library, sanitized=False):
    """What a child is told, as text."""
    shapes, runs, patience_s = (SANITIZED, SANITIZED_RUNS, SANITIZED_PATIENCE_S) if sanitized else (SHAPES, RUNS, PATIENCE_S)
    cluster = cluster_of(target)
    shapes = {name: {**shape, **cluster} for name, shape in shapes.items()}
    job = {"target": target, "source": str(source), "library": str(library), "shapes": shapes, "runs": runs, "patience_s": patience_s}
    return json.dumps(job)


def child_of(job, log, limit_s, under=()):
    """Do a job in a process of its own: its exit code and what it printed, None as the code of one that took too long."""
    command = [*under, sys.executable, "-m", "tests.ch10.mutant_child", job]
    environment = child_environment(ROOT, "cuda") | ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if under else {})
    try:
        ended = run(command, log, environment, limit_s)
    except ToolFailed:
        return None, log.read_text(errors="replace")
    return ended.code, ended.log


def judged(code, log):
    """What became of a library, from its child's end. Raises ToolFailed for a child that never came to its first run."""
    lines = [line for line in log.splitlines() if line.strip()]
    said = [json.loads(line) for line in lines if line.startswith("{")]
    at = next((each for each in reversed(said) if "run" in each), None)
    if at is None:
        raise ToolFailed(f"found `{(lines or ['nothing printed'])[-1][:200]}` before the first run; expected a GPU that multiplies")
    end = next((each for each in said if "found" in each), None)
    if end is not None and (code == 0 or end["found"] != "SURVIVED"):
        return Outcome(**at, **end)
    if code is None:
        return Outcome("TIMEOUT", **at, note="the process was killed")
    return Outcome("CRASHED", **at, note=f"the process ended with exit code {code}")


def tried(target, mutant, runner, folder):
    """What becomes of a mutant; what is the control's own code need not be tried."""
    if mutant.same_code:
        return Outcome("NO_CODE", note="the machine code is the same without it")
    outcome = judged(*runner(job_of(target, mutant.source, mutant.library), folder / f"{mutant.source.parent.name}.log", LIMIT_S))
    return replace(outcome, note="ptxas put it back") if mutant.restored and outcome.found == "SURVIVED" else outcome


def sanitized(target, names, folder, runner, side):
    """The first finding of each of the named sanitizers in a side, source and library, by the sanitizer's name."""
    path = tool("compute-sanitizer", "install the CUDA toolkit's compute-sanitizer")
    found = {}
    for name in names:
        under = (path, "--tool", name, "--report-api-errors", "no")
        log = folder / f"{side[0].parent.name}_{name}.log"
        _, printed = runner(job_of(target, *side, sanitized=True), log, SANITIZED_LIMIT_S, under)
        if findings := findings_in(printed):
            found[name] = findings[0][:300]
    return found


def with_findings(outcome, own, known):
    """A survivor of which a sanitizer says something that it does not say of the control."""
    new = {name: finding for name, finding in own.items() if name not in known}
    return replace(outcome, found="SANITIZER" if new else outcome.found, findings=new)


# --- the table


def rows_of(mutants, outcomes):
    """A row a wait, as JSON has it."""
    return [
        {
            **asdict(mutant.wait),
            "expected": "SURVIVED" if mutant.wait.text in SURVIVORS else "missed",
            "because": SURVIVORS.get(mutant.wait.text, ""),
            **{key: value for key, value in asdict(outcome).items() if key != "gpu"},
        }
        for mutant, outcome in zip(mutants, outcomes, strict=True)
    ]


def named(waits):
    """File, text and occurrence of places and their texts, from the top: no line number, which moves. Comments tell no two waits apart."""
    keys = [(place.partition(":")[0], text.partition("  //")[0]) for place, text in waits]
    seen, names = Counter(), []
    for key in keys:
        seen[key] += 1
        number = {1: "1st", 2: "2nd", 3: "3rd"}.get(seen[key], f"{seen[key]}th")
        names.append((*key, f"{number} of {keys.count(key)}" if keys.count(key) > 1 else ""))
    return names


def table_of(rows):
    """The rows of a target in Markdown; what went wrong stands with the run and the shape in which it did."""
    lines = ["| file | wait | occurrence | expected | found | in run | note |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for row, (file, text, occurrence) in zip(rows, named((row["place"], row["text"]) for row in rows), strict=True):
        where = f"{row['run']}, {row['shape']}" if row["found"] not in ("SURVIVED", "NO_CODE", "SANITIZER") else ""
        note = "; ".join(filter(None, [row["note"], *row["findings"].values(), row["because"] * (row["found"] == "SURVIVED")]))
        code = text.replace("|", "\\|")
        lines.append(f"| {file} | `{code}` | {occurrence} | {row['expected']} | {row['found']} | {where} | {note} |")
    return "\n".join(lines)


def measured(target, control, mutants, options, runner=child_of):
    """The document of one target. Raises ToolFailed if the control is not right, or if a child never came to its first run."""
    folder = options.folder / target

    def check_control(when):
        outcome = judged(*runner(job_of(target, *control), folder / f"control_{when}.log", LIMIT_S))
        if outcome.found != "SURVIVED":
            raise ToolFailed(f"with all its waits: found {outcome.found} in run {outcome.run}, {outcome.shape}; expected it to be right")
        return outcome

    gpu = check_control("before").gpu
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(lambda mutant: tried(target, mutant, runner, folder), mutants))
        check_control("after")
        if options.sanitize is not None:
            look = partial(sanitized, target, options.sanitize or SANITIZERS, folder, runner)
            survivors = [i for i, outcome in enumerate(outcomes) if outcome.found == "SURVIVED"]
            known, *found = pool.map(look, [control, *((mutants[i].source, mutants[i].library) for i in survivors)])
            for i, findings in zip(survivors, found, strict=True):
                outcomes[i] = with_findings(outcomes[i], findings, known)
    return {"target": target, "gpu": gpu, "runs": RUNS, "shapes": SHAPES, "control": "SURVIVED", "waits": rows_of(mutants, outcomes)}


def main(words=None):
    """Build, run, print and write; 0 however many waits survive, 1 where the control is wrong or nothing can be said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--build-only", action="store_true", help="what is slow, ahead; needs no GPU")
    parser.add_argument("--sanitize", nargs="*", choices=SANITIZERS, help="then run survivors under these tools; with no name all")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers at once")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/without_a_wait", help="of sources, libraries and logs")
    parser.add_argument("--json", type=Path, help="where the table goes, else beside the logs")
    options = parser.parse_args(words)
    try:
        control, mutants = build_all(options.target, options.folder, options.jobs)
        restored, same = (sum(getattr(mutant, name) for mutant in mutants) for name in ("restored", "same_code"))
        found = f"{same} have the control's machine code, {restored} a wait that ptxas put back"
        print(f"{options.target}: {len(mutants)} mutants and the control built; {found}", flush=True)
        if options.build_only:
            return 0
        if not describe_machine(ROOT).gpus:
            raise ToolFailed("no CUDA device; expected one of compute capability 9.0, or --build-only")
        document = measured(options.target, control, mutants, options)
    except (SideFailure, Unreadable, ToolFailed) as failure:
        print(f"{options.target}: {failure}", file=sys.stderr)
        return 1
    path = options.json or options.folder / options.target / "table.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{document['gpu']}, {RUNS} runs\n\n{table_of(document['waits'])}\n\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
