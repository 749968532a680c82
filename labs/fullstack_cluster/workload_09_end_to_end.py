"""One job, by chapter 20's pairs: a training step, a pipeline of layers, decoding from a cache, and a batch from the host.

Each stage's shape, inputs and reference are those of its pair, at the pair's timed shape.
"""

from dataclasses import replace

from shared_chapter20 import asked, merged, of, workloads

from common import Precision, Workload

PAIRS = workloads()


def inputs(rand, **shape):
    """The pairs' inputs, some scaled by powers of 2 so that one tolerance does for all stages.

    An average over a context is about 1, and the stream's answers are a quarter of that.
    """
    drawn = merged({stage: pair.inputs(rand, **of(stage, shape)) for stage, pair in PAIRS.items()})
    for name in ("cache_past_values", "cache_v"):
        drawn[name] *= 2.0 ** round(shape["cache_context"] ** 0.5).bit_length() / 2
    drawn["stream_down"] *= 0.25
    return drawn


def outputs(**shape):
    """The pairs' outputs. The loss is held as its own pair holds it: it tells weights that moved from weights that stayed."""
    specs = merged({stage: pair.outputs(**of(stage, shape)) for stage, pair in PAIRS.items()})
    own = Precision(PAIRS["training"].rtol, PAIRS["training"].atol)
    return specs | {"training_loss": replace(specs["training_loss"], tolerance=own)}


def reference(**given):
    return tuple(asked(pair.reference, of(stage, given)) for stage, pair in PAIRS.items())


def work(**shape):
    total = {}
    for stage, pair in PAIRS.items():
        for ceiling, amount in pair.work(**of(stage, shape)).items():
            total[ceiling] = total.get(ceiling, 0) + amount
    return total


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at=merged({stage: pair.time_at for stage, pair in PAIRS.items()}),
    check_at=tuple(merged({stage: pair.check_at[i] for stage, pair in PAIRS.items()}) for i in range(3)),
    work=work,
    # The pipeline's. Three steps of AdamW move a weight by less: that they moved, the loss tells.
    rtol=2**-7,
    atol=0.02,
    constants=tuple(f"{stage}_{name}" for stage, pair in PAIRS.items() for name in pair.constants),
    in_place=tuple(f"training_{name}" for name in PAIRS["training"].in_place),
    state="evolves",
    steps=3,
    clock="launch",
)
