"""ch13:expert_parallelism: no token is dropped, however uneven the experts are."""

import pytest
import torch

from common.python.child.sides.loader import load_side, load_workload
from tests.support.teeth import ROOT

WORKLOAD = load_workload(ROOT / "ch13/workload_expert_parallelism.py")
TOKENS, EXPERTS, WIDTH = 100, 6, 16

ROUTINGS = {
    "all tokens to one expert": torch.full((TOKENS, 1), 4),
    "all tokens to the last two": torch.tensor([[5, 4]]).expand(TOKENS, 2).contiguous(),
    "one token elsewhere": torch.tensor([[0]] + [[3]] * (TOKENS - 1)),
}


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("name", ["baseline", "optimized"])
def test_every_token_is_answered_by_the_experts_it_chose(name, routing):
    chosen = ROUTINGS[routing]
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(torch.bfloat16)

    gates = torch.full(chosen.shape, 1 / chosen.shape[1], dtype=torch.bfloat16)
    values = {"x": normal(TOKENS, WIDTH), "chosen": chosen, "gates": gates}
    values |= {"up": normal(EXPERTS, 2 * WIDTH, WIDTH) / 4, "down": normal(EXPERTS, WIDTH, WIDTH) / 4}
    y = load_side(ROOT / f"ch13/{name}_expert_parallelism.py", WORKLOAD, None).prepare(values, {})()
    right = WORKLOAD.reference(**{key: value.double() if value.is_floating_point() else value for key, value in values.items()})
    assert (right.abs().amax(dim=1) > 0).all()
    torch.testing.assert_close(y.double(), right, rtol=WORKLOAD.rtol, atol=WORKLOAD.atol)
