"""What HolisticTraceAnalysis reads in the traces of profiling/, as JSON in µs, to hold REPORT.md's breakdowns against it.

    python3 -m venv hta && hta/bin/pip install HolisticTraceAnalysis
    hta/bin/python labs/ultimate_moe_inference/read_by_hta.py artifacts/ultimate_moe_inference/profiling

It brings its own pandas and plotly, hence an environment of its own; without it this says SKIPPED. Unless told not to, it rounds each
start up and each end down to whole microseconds, of which many kernels here have two.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path


def breakdowns(folder, analysis):
    """By side, both breakdowns; of all sides together, the time by kinds."""
    sides = {int(file.stem.partition("_")[0]): file.stem.partition("_")[2] for file in folder.glob("*.json")}
    times = analysis.get_temporal_breakdown(visualize=False)
    names = {"span": "kernel_time(us)", "idle": "idle_time(us)", "compute": "compute_time(us)", "other": "non_compute_time(us)"}
    every = sys.maxsize  # kernels; the default lumps together all but ten
    kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=every, include_memory_kernels=True)
    found = {side: {"kernels": {}} for side in sides.values()}
    for row in times.to_dict("records"):
        found[sides[int(row["rank"])]] |= {name: float(row[column]) for name, column in names.items()}
    for row in kernels.to_dict("records"):
        found[sides[int(row["rank"])]]["kernels"][row["name"]] = [float(row["sum (us)"]), float(row["max (us)"])]
    return {"kinds": {row["kernel_type"]: float(row["sum"]) for row in kinds.to_dict("records")}, "sides": found}


def main(arguments=None):
    """Print the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the profiling/ that run_full_analysis.py --profile hta wrote")
    folder = parser.parse_args(arguments).folder
    if importlib.util.find_spec("hta") is None:
        print("SKIPPED: found no module hta; expected HolisticTraceAnalysis in this interpreter's environment")
        return
    if not list(folder.glob("*.json")):
        sys.exit(f"read_by_hta.py: {folder}: found no trace; expected those of run_full_analysis.py --profile hta")
    os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")
    analysis = importlib.import_module("hta.trace_analysis").TraceAnalysis(trace_dir=str(folder))
    print(json.dumps(breakdowns(folder, analysis), indent=1))


if __name__ == "__main__":
    main()
