"""A language model of bytes serves long prompts among short ones: an engine of `slots` sequences with paged keys and values.

The weights are byte_lm's, grown at the timed shape to a model that computes the same function; prompts are text of Python's library.
A step takes at most `budget` tokens where the side schedules chunks. `arrival_poisson` is the load, as a share of saturation.
"""

import functools
import sysconfig
from pathlib import Path

from common import Serving, Slo, Traffic, Workload
from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config

LARGE, SMALL = {"width": 16, "more_layers": 4}, {"width": 1, "more_layers": 0}
FILES = ("inspect.py", "subprocess.py", "tarfile.py", "typing.py")


def inputs(rand, width, more_layers, **_):
    trained = byte_lm()
    config = grown_config(trained, width=width, layers=more_layers)
    return {"config": config, "weights": grow(rand.asset("byte_lm"), trained, config, rand)}


@functools.cache
def text():
    library = Path(sysconfig.get_paths()["stdlib"])
    return b"".join((library / name).read_bytes() for name in FILES)


def prompts(rng, count):
    start = rng.randrange(len(text()) - count)
    return text()[start : start + count]


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 4, longest)}
    arrivals = ("of_saturation", arrival_poisson) if arrival_poisson else "at_once"
    return Traffic(count=requests, **lengths, arrivals=arrivals, prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(
        traffic,
        reference_logits,
        vocabulary=256,
        atol=0.13,  # bfloat16 on a CPU: see ch15:continuous_batching
        slo=Slo(ttft_ms=2000.0, tpot_ms=10.0),
    ),
    time_at={"requests": 96, "prompt": 1536, "longest": 96, "slots": 16, "budget": 256, "arrival_poisson": 0.8, **LARGE},
    cpu_at={"requests": 8, "prompt": 64, "longest": 16, "slots": 4, "budget": 16, "arrival_poisson": 0.0, **SMALL},
    check_at=(
        {"requests": 5, "prompt": 40, "longest": 8, "slots": 3, "budget": 12, "arrival_poisson": 0.0, **SMALL},
        {"requests": 6, "prompt": 64, "longest": 12, "slots": 4, "budget": 32, "arrival_poisson": 0.0, **SMALL},
    ),
    constants=("weights",),
    goal="itl_ms.p95",
)
