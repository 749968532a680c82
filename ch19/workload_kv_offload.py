"""Turns of conversations with long histories: each gets a message of some tokens per turn, a group of conversations after the other.

All conversations but one group are idle. The model is Mistral-7B-v0.2 with two layers and a tied head; weights and histories are random.
"""

from shared_conversations import inputs, outputs, work
from shared_single_conversations import reference

from common import Workload

WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"layers": 2, "width": 32, "conversations": 16, "context": 16384, "message": 32, "turns": 2, "group": 2, "block": 256},
    check_at=(
        {"layers": 2, "width": 2, "conversations": 3, "context": 40, "message": 5, "turns": 2, "group": 2, "block": 16},
        {"layers": 1, "width": 4, "conversations": 4, "context": 32, "message": 3, "turns": 3, "group": 1, "block": 8},
        {"layers": 2, "width": 2, "conversations": 2, "context": 17, "message": 2, "turns": 1, "group": 2, "block": 16},
    ),
    work=work,
    rtol=0.02,  # logits have a deviation of 1; activations are rounded to BF16 in every layer
    atol=0.075,
    reference_in="float32",  # histories would take four times their bytes in float64; BF16 is off by 10 000 times what float32 is
    constants=("weights", "keys", "values"),
    goal="memory",
)
