"""Which share of a model's ranks should split its products (tensor parallelism, TP), and which train on batches of their own (DP)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """TP ranks hold one copy of the model together; there are DP copies. `memory_gb` a GPU: the lower and the upper end, None if open."""

    tp: int
    dp: int
    memory_gb: tuple[float, float | None]


ROWS = (  # parameters below which a row holds, TP on hosts of eight GPUs, GB a GPU: rules of thumb, not measured here
    (1e9, 1, (1.0, 2.0)),
    (10e9, 2, (4.0, 10.0)),
    (30e9, 4, (10.0, 25.0)),
    (100e9, 8, (25.0, 50.0)),
    (math.inf, 8, (50.0, None)),
)


def recommended(parameters, gpus=8):
    """The layout for a model of so many parameters; TP halves until it divides `gpus`. Raises ValueError for a count below 1."""
    if parameters < 1 or gpus < 1:
        raise ValueError(f"found {parameters} parameters and {gpus} GPUs; expected at least 1 of each")
    tp, memory = next((tp, memory) for limit, tp, memory in ROWS if parameters < limit)
    tp = math.gcd(tp, gpus)
    return Layout(tp, gpus // tp, memory)


def require_tp(tp, heads, ranks):
    """Raises ValueError, one sentence, unless `tp` ranks can share out `heads` and divide `ranks`."""
    if tp < 1 or ranks % tp or heads % tp:
        raise ValueError(f"--tp-size: found {tp}; expected a divisor of the {ranks} ranks and of the model's {heads} heads")
