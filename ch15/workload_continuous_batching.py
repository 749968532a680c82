"""A language model of bytes serves requests whose answers have different lengths, through `slots` sequences at a time.

The weights are byte_lm's, trained on Python's standard library; prompts are its text. At the timed shape the model is 16 times as wide
and 8 layers deep, grown so that it computes the same function: the added weights cost what they cost and change no answer.
"""

import functools
import sysconfig
from pathlib import Path

from common import Serving, Slo, Traffic, Workload
from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config

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
    arrivals = ("of_saturation", arrival_poisson) if arrival_poisson else "at_once"
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 8, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals, prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(
        traffic,
        reference_logits,
        vocabulary=256,
        # on a CPU bfloat16 is up to 0.09 off float32 (all logits of 250 answers); the smallest effect of a stale block of 16 tokens is 0.24
        atol=0.13,
        slo=Slo(ttft_ms=2000.0, tpot_ms=10.0),
    ),
    time_at={"requests": 160, "prompt": 32, "longest": 128, "slots": 16, "width": 16, "more_layers": 4, "arrival_poisson": 0.0},
    cpu_at={"requests": 12, "prompt": 32, "longest": 24, "slots": 4, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
    check_at=(
        {"requests": 5, "prompt": 32, "longest": 8, "slots": 2, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
        {"requests": 6, "prompt": 32, "longest": 16, "slots": 4, "width": 1, "more_layers": 1, "arrival_poisson": 0.0},
    ),
    constants=("weights",),
    goal="output_tokens_per_s",
)
