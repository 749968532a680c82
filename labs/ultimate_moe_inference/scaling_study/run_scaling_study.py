"""The whole scaling study of one model: batch sizes, precisions and layers, from one run of the ladder for each batch size.

    ./setup.sh python labs/ultimate_moe_inference/scaling_study/run_scaling_study.py --model 120b

Writes study_<model>.md and two drawings. One GPU: ultimate_inference_ranks is the pair for several.
"""

import sys

from labs.ultimate_moe_inference.scaling_study import batch_size_sweep, compare_optimizations, precision_sweep
from labs.ultimate_moe_inference.scaling_study.study import Unmeasured, flags, sweep


def main(arguments=None):
    """Measure what is not measured yet, then write the study."""
    options = flags(__doc__.splitlines()[0]).parse_args(arguments)
    try:
        rows = sweep(options.folder, options.batch_sizes, options.model)
        parts = [f"# Scaling study: gpt-oss-{options.model}, 2 layers, one GPU\n"]
        for name, heading, module in (
            ("batch_size", "Tokens per second", batch_size_sweep),
            ("precision", "Experts in BF16 and in MXFP4", precision_sweep),
        ):
            text, picture = module.report(rows, options.model)
            (options.folder / f"{name}_{options.model}.svg").write_text(picture)
            parts.append(f"## {heading}\n\n{text}\n![{heading}]({name}_{options.model}.svg)\n")
        parts += [f"## Layers, sequences = {batch}\n\n{compare_optimizations.report(row)}" for batch, row in rows.items()]
    except Unmeasured as reason:
        sys.exit(f"run_scaling_study.py: {reason}")
    file = options.folder / f"study_{options.model}.md"
    file.write_text("\n".join(parts))
    print(file)


if __name__ == "__main__":
    main()
