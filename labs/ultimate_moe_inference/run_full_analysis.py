"""Run the lab's ladder and write REPORT.md: layers, ceilings, and with a profile where a step's time goes.

    ./setup.sh python labs/ultimate_moe_inference/run_full_analysis.py [--quick] [--profile hta]

--quick times two calls a side instead of measuring until it is decided. A second call with the same --folder goes on. A profile leaves a
Chrome trace for each layer in profiling/, for Perfetto, and for HolisticTraceAnalysis, which read_by_hta.py asks. Its answers, put into
the folder as hta.json, stand beside ours in the next call's report.
"""

import argparse
import json
import sys
from pathlib import Path

from common.python.errors import ExitCode
from common.python.report.rows import machine_text
from labs.ultimate_moe_inference import trace_breakdown
from labs.ultimate_moe_inference.scaling_study import compare_optimizations, roofline_analyzer
from labs.ultimate_moe_inference.scaling_study.study import ROOT, TARGET, Unmeasured, bars, command_of, run, times_of

PROFILES = {"none": [], "minimal": ["minimal"], "hta": ["minimal"], "roofline": ["roofline"], "all": ["deep_dive"]}


def options_of(arguments):
    """The command line's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two timed calls a side: a first look, no decided row")
    parser.add_argument("--profile", choices=PROFILES, default="none", help="nsys and ncu beside the times; all: all counters; hta: traces")
    parser.add_argument("--folder", type=Path, default=ROOT / "artifacts/ultimate_moe_inference", help="the run and REPORT.md")
    return parser.parse_args(arguments)


def flags_of(options):
    """What the run is told beside its target."""
    quick = ["--iterations", "2", "--warmup", "1"] if options.quick else []
    return [*quick, *(flag for preset in PROFILES[options.profile] for flag in ("--profile", preset))]


def picture(folder, name, svg):
    """The Markdown of a drawing that is written beside the report."""
    (folder / f"{name}.svg").write_text(svg)
    return f"![{name}]({name}.svg)\n"


def origin(folder):
    """Where the times of a run's folder come from: its day, machine, versions and commit."""
    file = folder / "run.json"
    if not file.exists():
        return ""
    run = json.loads(file.read_text())
    return f" Measured on {run['started'][:10]}: {machine_text(run['environment'])}."


def beside_hta(found, folder):
    """The section that holds the breakdowns against HolisticTraceAnalysis' own; none without its answers."""
    file = folder / "hta.json"
    if not file.exists():
        return []
    said = "In µs. HolisticTraceAnalysis read the same traces by `read_by_hta.py`.\n"
    return ["## HolisticTraceAnalysis and this report\n", said, trace_breakdown.beside_hta(found, json.loads(file.read_text()))]


def traced(row, folder):
    """The sections of the traced steps."""
    found = trace_breakdown.read(trace_breakdown.collect(folder, times_of(row)))
    if not found:
        return ["## Where the time goes\n", "No step was traced on a GPU; `--profile hta` traces one of each layer.\n"]
    shares = {
        side: {
            "computes": at.compute_ns / at.span_ns,
            "only copies or communicates": at.other_ns / at.span_ns,
            "idle": at.idle_ns / at.span_ns,
        }
        for side, at in found.items()
    }
    drawn = bars("A traced step: where its time goes", shares, {side: f"of {at.span_ns / 1e3:,.0f} µs" for side, at in found.items()})
    return [
        "## Temporal breakdown\n",
        "One traced step of each layer. Tracing slows the host, so a step that waits for it is idle for longer here.\n",
        trace_breakdown.temporal(found),
        picture(folder, "temporal", drawn),
        "## Kernel breakdown\n",
        trace_breakdown.kernels(found),
        "The run leaves a trace for each layer in `profiling/`, for Perfetto. `read_by_hta.py` asks HolisticTraceAnalysis the same.\n",
        *beside_hta(found, folder),
    ]


def report(row, options):
    """REPORT.md of a row; its drawings are written beside it."""
    sort = "quick, two calls a side" if options.quick else "measured until decided"
    idea = f"Idea: {row['idea'].rstrip('.')}. Times: {sort}.{origin(options.folder)}\n"
    parts = [f"# {TARGET}\n", idea, "## Layers\n", compare_optimizations.report(row)]
    times = times_of(row)
    drawn = bars(
        "Time of a decode step", {side: {"": us} for side, us in times.items()}, {side: f"{us:,.0f} µs" for side, us in times.items()}
    )
    parts.append(picture(options.folder, "layers", drawn))
    parts.append("## Ceilings\n")
    try:
        parts.append(roofline_analyzer.report(row))
    except Unmeasured as reason:
        parts.append(f"{reason}\n")
    parts += traced(row, options.folder)
    parts.append("## More\n\nThe run's `report.html` has intervals, proofs, kernels and, if they were asked for, profiles.\n")
    return "\n".join(parts)


def main(arguments=None):
    """Run, then report."""
    options = options_of(arguments)
    try:
        done = run(command_of(options.folder, {}, flags_of(options)))
        if done.returncode == ExitCode.USAGE:  # such as other flags than those that made the rows in the folder
            sys.exit(f"run_full_analysis.py: --folder {options.folder}: the run was refused, as said above; nothing was reported")
        text = report(compare_optimizations.row_of(options.folder), options)
    except Unmeasured as reason:
        sys.exit(f"run_full_analysis.py: {reason}")
    (options.folder / "REPORT.md").write_text(text)
    print(options.folder / "REPORT.md")


if __name__ == "__main__":
    main()
