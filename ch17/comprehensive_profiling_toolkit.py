"""Profilers and bottlenecks from one place: what this machine can profile with, what bounds a run's sides, and how to trace a server.

    ./setup.sh python ch17/comprehensive_profiling_toolkit.py tools
    ./setup.sh python ch17/comprehensive_profiling_toolkit.py profile ch07:transpose [--level roofline]
    ./setup.sh python ch17/comprehensive_profiling_toolkit.py bottlenecks artifacts/RUN
    ./setup.sh python ch17/comprehensive_profiling_toolkit.py trace [--run] -- python tools/serving/completions_server.py

`profile` is `benchmark_cli run --profile` and then `bottlenecks`, which judges by the ceilings measured on the machine of the run.
`trace` makes a command for nsys, for serving rows are not profiled. It leaves out what `nsys profile --help` here does not list.
"""

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.machine.description import describe_machine, find_tool, output_of
from common.python.machine.doctor import examine
from common.python.profile.advice import diagnoses
from common.python.project import PROJECT_ROOT
from common.python.report.run_folder import load
from common.python.settings import Profile
from common.python.storage import ARTIFACTS

# What a missing tool costs, and what there is without it.
TOOLS = {
    "nsys": "no timeline of a server; `profile` traces steps with torch.profiler, as ch16/inference_profiling.py does",
    "ncu": "no hardware counters; claims about them are unchecked",
    "compute-sanitizer": "no search for races and bad accesses (--sanitize)",
    "nvdisasm": "no claims about instructions",
}
# What a server's trace should hold: the option in the spellings of several releases, newest first, its value, and what it shows.
WANTED = (
    (("--cuda-graph-trace",), "node", "kernels inside of CUDA graphs"),
    (("--cuda-event-trace",), "true", "events, by which streams wait for each other"),
    (("--cuda-memory-usage",), "true", "device memory over time"),
    (("--sample",), "process-tree", "where the host's time goes"),
    (("--gpu-metrics-devices", "--gpu-metrics-device"), "all", "SMs, DRAM and NVLink over time"),
    (("--nic-metrics",), "true", "network cards over time"),
    (("--storage-metrics",), "--storage-devices=all", "disks over time"),
)
SOURCES = ("cuda", "nvtx", "osrt", "ucx", "gds")  # of events, for --trace


def nsys_options(listed):
    """Options for `nsys profile` whose --help is `listed`, and a sentence for each that is left out."""
    texts = dict(re.findall(r"^[ \t]*(?:-\w, )?(--[a-z][\w-]*)(.*?)(?=^[ \t]*(?:-\w, )?--[a-z]|\Z)", listed, re.MULTILINE | re.DOTALL))
    options, left_out = ["--force-overwrite=true"], []
    sources = [source for source in SOURCES if re.search(rf"\b{source}\b", texts.get("--trace", ""))]
    options += [f"--trace={','.join(sources)}"] * bool(sources)
    left_out += [f"--trace={source}: this nsys does not list it" for source in SOURCES if source not in sources]
    for spellings, value, shows in WANTED:
        known = next((name for name in spellings if name in texts), None)
        if known:
            options.append(f"{known}={value}")
        else:
            left_out.append(f"{spellings[0]}: this nsys does not list it; the trace will not show {shows}")
    return options, left_out


def tell_tools():
    """What there is to profile with, and what is missing and what that costs; 5 where counters and timelines both are."""
    machine = describe_machine(PROJECT_ROOT)
    print(f"GPUs: {', '.join(gpu.name for gpu in machine.gpus) or 'none; every kernel on this machine runs on the CPU'}")
    for name, cost in TOOLS.items():
        path = find_tool(name)
        print(f"{name:<18}{path or f'missing: {cost}'}")
    for finding in examine(machine, PROJECT_ROOT):
        if finding.name in ("counters", "profilers") or (finding.name == "nsys" and finding.advice):
            print(f"{finding.name:<18}{finding.found}{f'; {finding.advice}' * bool(finding.advice)}")
    return ExitCode.GOOD if machine.gpus and any(map(find_tool, ("nsys", "ncu"))) else ExitCode.NOTHING_MEASURED


def tell_bottlenecks(folder):
    """What bounds each side of a run, on what that rests, and what may help; 5 where nothing tells."""
    _, rows = load(folder)
    print(f"bottlenecks in {folder}, by the ceilings that were measured on the machine of the run")
    told = 0
    for row in rows:
        for found in diagnoses(row):
            told += 1
            print(f"{row.target} @{found.shape} {found.side}: {found.bottleneck}\n  {found.rests_on}")
            for sentence in (*([found.intensity.words] if found.intensity else []), *found.advice):
                print(f"  - {sentence}")
    if not told:
        print("nothing is told: no ceiling was kept (`benchmark_cli peak`) and no counter read (`benchmark_cli run --profile`, with ncu)")
    return ExitCode.GOOD if told else ExitCode.NOTHING_MEASURED


def profile(targets, level, folder):
    """A run of these targets under the profilers, and its bottlenecks."""
    command = [sys.executable, "tools/cli/benchmark_cli.py", "run", f"--profile={level}", "--artifacts-dir", str(folder.absolute())]
    done = subprocess.run([*command, *(word for target in targets for word in ("--targets", target))], cwd=PROJECT_ROOT, check=False)
    if done.returncode not in (ExitCode.GOOD, ExitCode.REGRESSION, ExitCode.INCONCLUSIVE):
        return done.returncode
    return tell_bottlenecks(folder)


def trace(program, stem, *, run):
    """nsys' command for a program, printed, and run if asked; 5 where there is no nsys."""
    if not program:
        raise BenchmarkError("trace: found no program; expected one behind --, as in: trace -- python tools/serving/completions_server.py")
    nsys = find_tool("nsys")
    if nsys is None:
        print(f"found no nsys; expected Nsight Systems installed. Without it: {TOOLS['nsys']}", file=sys.stderr)
        return ExitCode.NOTHING_MEASURED
    options, left_out = nsys_options(output_of(str(nsys), "profile", "--help"))
    for sentence in left_out:
        print(f"warning: {sentence}", file=sys.stderr)
    command = [str(nsys), "profile", *options, f"--output={stem}", *program]
    print(shlex.join(command), flush=True)
    return subprocess.run(command, check=False).returncode if run else ExitCode.GOOD


def parser():
    """The command line."""
    made = Arguments(description=__doc__.splitlines()[0])
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("tools", help="what this machine can profile with, and what is missing")
    run = commands.add_parser("profile", help="run targets under the profilers, then tell their bottlenecks")
    run.add_argument("targets", nargs="+", help="as ch07:transpose")
    run.add_argument("--level", choices=[level.value for level in Profile if level != Profile.NONE], default=Profile.ROOFLINE.value)
    run.add_argument("--folder", type=Path, help="of the run, absent or empty. Default: artifacts/profiled_<time>")
    tell = commands.add_parser("bottlenecks", help="what bounds the sides of a run, and what may help")
    tell.add_argument("run", type=Path, help="the run's folder")
    nsys = commands.add_parser("trace", help="a command for nsys that fits the nsys of this machine")
    nsys.add_argument("--run", action="store_true", help="run it, too")
    nsys.add_argument("--out", default="artifacts/traced", help="the report's name, without .nsys-rep")
    nsys.add_argument("program", nargs="*", help="behind --")
    return made


def main(arguments=None):
    """Do what was asked for."""
    chosen = parser().parse_args(arguments)
    try:
        if chosen.command == "tools":
            return int(tell_tools())
        if chosen.command == "profile":
            folder = chosen.folder or ARTIFACTS / time.strftime("profiled_%Y%m%d_%H%M%S")
            return int(profile(chosen.targets, chosen.level, folder))
        if chosen.command == "trace":
            return int(trace(chosen.program, chosen.out, run=chosen.run))
        return int(tell_bottlenecks(chosen.run))
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)


if __name__ == "__main__":
    exit_with(main)
