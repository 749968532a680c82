"""A server of nanochat: a new request's prompt is computed while 16 running requests decode one token each. One captured graph.

`first` are the logits behind the prompt, `logits` those of the running requests. Neither needs the other. bf16.
"""

from shared_nanochat import caches_of, config_of, decode
from shared_prefill import flat
from shared_workload import BF16
from shared_workload import inputs as decoded

from common import Spec, Workload
from common.models.decoder import forward


def inputs(rand, layers, hidden, vocabulary, sequences, context, prompt):
    return decoded(rand, layers, hidden, vocabulary, sequences, context) | {"prompted": rand.integers(prompt, low=0, high=vocabulary)}


def reference(tokens, weights, keys, values, prompted, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    first = forward(flat(weights), config, prompted)[-1]
    return first, decode(config, tokens, weights, *caches_of(config, keys, values))


def work(layers, hidden, vocabulary, sequences, context, prompt):
    """Products of all weights, of the head for one token a request, and half of the prompt's scores; a bf16 weight is read once."""
    blocks, head = 12 * layers * hidden**2, hidden * vocabulary
    return {
        "bf16": 2 * blocks * (prompt + sequences) + 2 * head * (1 + sequences) + 2 * layers * hidden * prompt**2,
        "dram_read": 2 * (blocks + head) + 4 * layers * sequences * context * hidden,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda vocabulary, sequences, **_: {"first": Spec((vocabulary,), BF16), "logits": Spec((sequences, vocabulary), BF16)},
    reference=reference,
    constants=("weights", "keys", "values"),
    time_at={"layers": 20, "hidden": 1280, "vocabulary": 65536, "sequences": 16, "context": 1024, "prompt": 1024},
    cpu_at=None,  # as in fast_nanochat
    check_at=(
        {"layers": 1, "hidden": 128, "vocabulary": 97, "sequences": 1, "context": 5, "prompt": 3},
        {"layers": 2, "hidden": 256, "vocabulary": 512, "sequences": 3, "context": 40, "prompt": 65},
    ),
    work=work,
    clock="launch",
    rtol=2**-6,  # as in fast_nanochat
    atol=0.1,
)
