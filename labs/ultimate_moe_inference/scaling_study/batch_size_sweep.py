"""Tokens a second of every layer of the lab over the number of sequences that decode together.

    ./setup.sh python labs/ultimate_moe_inference/scaling_study/batch_size_sweep.py --batch-sizes 1 2 4 8 16 32

Prints a table and draws batch_size_<model>.svg. A point takes a minute or more of a GPU; a second call goes on where the first ended.
"""

import sys

from labs.ultimate_moe_inference.scaling_study.study import Unmeasured, drawn, flags, sweep, table, times_of, tokens_per_second


def report(rows, model):
    """Table and drawing of rows by batch size."""
    times = {batch: times_of(row) for batch, row in rows.items()}
    sides = list(next(iter(times.values())))
    rates = {side: [tokens_per_second(batch, each[side]) for batch, each in times.items()] for side in sides}
    cells = [[str(batch), *(f"{rates[side][at]:.0f}" for side in sides)] for at, batch in enumerate(times)]
    title = f"gpt-oss-{model}, 2 layers: tokens per second over sequences"
    return table(["sequences", *sides], cells), drawn(title, list(times), rates)


def main(arguments=None):
    """Measure what is not measured yet, then report."""
    options = flags(__doc__.splitlines()[0]).parse_args(arguments)
    try:
        text, picture = report(sweep(options.folder, options.batch_sizes, options.model), options.model)
    except Unmeasured as reason:
        sys.exit(f"batch_size_sweep.py: {reason}")
    file = options.folder / f"batch_size_{options.model}.svg"
    file.write_text(picture)
    print(f"Tokens per second, of 2 layers\n\n{text}\n{file}")


if __name__ == "__main__":
    main()
