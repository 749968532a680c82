"""Experts in BF16 (layer 5) against experts in MXFP4 (the whole ladder), over the number of sequences that decode together.

    ./setup.sh python labs/ultimate_moe_inference/scaling_study/precision_sweep.py

Prints a table and draws precision_<model>.svg. FP8 has no column: no side of the lab has experts in FP8.
"""

import sys

from labs.ultimate_moe_inference.scaling_study.study import Unmeasured, drawn, flags, sweep, table, times_of

PRECISIONS = {"BF16": "layer5_compile", "MXFP4": "optimized"}  # by precision of the experts, the ladder's side


def report(rows, model):
    """Table and drawing of rows by batch size. Raises Unmeasured if a side has no time."""
    times = {batch: times_of(row) for batch, row in rows.items()}
    if missing := [side for side in PRECISIONS.values() for each in times.values() if side not in each]:
        raise Unmeasured(f"{missing[0]}: found no time of this side of the ladder; expected one in each run")
    lines = {precision: [each[side] for each in times.values()] for precision, side in PRECISIONS.items()}
    cells = [
        [str(batch), *(f"{lines[name][at]:.1f}" for name in lines), f"{lines['BF16'][at] / lines['MXFP4'][at]:.2f}x"]
        for at, batch in enumerate(times)
    ]
    title = f"gpt-oss-{model}, 2 layers: µs per step over sequences"
    return table(["sequences", *(f"{name}, µs" for name in lines), "BF16 / MXFP4"], cells), drawn(title, list(times), lines)


def main(arguments=None):
    """Measure what is not measured yet, then report."""
    options = flags(__doc__.splitlines()[0]).parse_args(arguments)
    try:
        text, picture = report(sweep(options.folder, options.batch_sizes, options.model), options.model)
    except Unmeasured as reason:
        sys.exit(f"precision_sweep.py: {reason}")
    file = options.folder / f"precision_{options.model}.svg"
    file.write_text(picture)
    print(f"{text}\n{file}")


if __name__ == "__main__":
    main()
