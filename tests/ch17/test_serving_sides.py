"""Random traces against both sides of prefill_decode_disagg: each request gets the model's tokens, and no slot or block is lost."""

import random

import pytest
import torch

from common.python.child.sides.loader import load_side, load_workload
from common.python.project import PROJECT_ROOT
from tests.ch15.test_serving_sides import LONGEST, PROMPT, TARGET, WEIGHTS, Clients

TRACES = {"baseline": 4, "optimized": 30}  # of each shape: an engine that lost a block in each would be out of them after a few
NAME = "prefill_decode_disagg"


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("side", TRACES)
def test_random_traces_are_answered(side, slots):
    torch.set_num_threads(1)
    folder = PROJECT_ROOT / "ch17"
    loaded = load_side(folder / f"{side}_{NAME}.py", load_workload(folder / f"workload_{NAME}.py"), None)
    rng, clients = random.Random(f"{side} {slots}"), Clients()
    given = {"arrivals": clients, "emit": clients.emit, "weights": WEIGHTS, "config": TARGET, "device": torch.device("cpu")}
    serve = loaded.prepare(given, {"slots": slots, "budget": 8, "prompt": PROMPT, "longest": LONGEST})
    try:
        for _ in range(TRACES[side]):
            clients.begin(random.Random(rng.random()))
            serve()
            clients.require_right()
    finally:
        loaded.close()
