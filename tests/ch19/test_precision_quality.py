"""ch19:dynamic_precision_switching on 200 held-out prompts: both FP8 sides keep the bound that the pair states, and a rash policy does not.

The trained model, byte_lm, reads sources that were held out of its training, on a CPU. Products are PyTorch's, of the values that a side's
kernel would read: the kernel itself is held to them by the tests of all pairs.
"""

import functools
import math
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.train_byte_lm import blocks_at, read_corpus
from common.python.child.sides.assets import read_asset
from common.python.child.sides.loader import import_file, load_workload
from common.tensor_files import read_tensors
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

PROMPTS, COUNT = 200, 48  # and bytes of each, as the pair reads them
SWITCHING, ALWAYS = (f"optimized_dynamic_precision_switching{variant}.py" for variant in ("", "_fp8"))
CONFIG = replace(byte_lm(), dtype=torch.bfloat16)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def products_without_onednn():
    """It takes longer to begin a product of one token than PyTorch takes to multiply."""
    was_enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
    yield
    torch.backends.mkldnn.set_flags(_enabled=was_enabled)


@functools.cache
def weights():
    return read_tensors(read_asset("byte_lm").data, torch.device("cpu"))


@functools.cache
def exact():
    """By the identity of a weight its values in float32."""
    return {id(weight): weight.float() for weight in weights().values()}


@functools.cache
def prompts():
    """int64 [PROMPTS, COUNT], spread evenly over the sources that were held out."""
    text = read_corpus(Path(sysconfig.get_paths()["stdlib"])).validation
    return blocks_at(text, torch.arange(PROMPTS) * ((len(text) - COUNT) // PROMPTS), COUNT)


@functools.cache
def expected(prompt):
    """Logits in float32."""
    return reference_logits({name: exact()[id(weight)] for name, weight in weights().items()}, byte_lm(), prompts()[prompt], 0)


def in_four_bits(w):
    """As `narrowed`: integers from -7 to 7 with a scale for each row. Too inexact for the policy."""
    scales = w.float().abs().amax(1) / 7
    codes = (w.float() / scales[:, None]).round()
    return codes, scales, (codes * scales[:, None] - w).norm() / w.float().norm()


class Side:
    """A side of the pair whose products PyTorch computes. `narrow` counts those that read narrow weights, of all `products`."""

    def __init__(self, monkeypatch, file, narrowed=None):
        with modules_of(ROOT / "ch19", monkeypatch):
            self.module = import_file(ROOT / "ch19" / file)
        narrowed = narrowed or self.module.narrowed
        self.products = self.narrow = 0
        held = {id(weight): narrowed(weight) for name, weight in weights().items() if name.endswith(("gate_up", "down"))}
        self._restored = {id(narrow): narrow.float() * scales[:, None] for narrow, scales, _ in held.values()}
        monkeypatch.setattr(self.module, "narrowed", lambda w: held[id(w)])
        monkeypatch.setattr(self.module, "multiply", self._multiply)

    def _multiply(self, wide, narrow, scales, state, x):
        is_narrow = bool(state[0] == 1)
        self.products, self.narrow = self.products + 1, self.narrow + is_narrow
        return (x.float() @ (self._restored[id(narrow)] if is_narrow else exact()[id(wide)]).T).to(x.dtype)

    def worst(self, prompt, bound):
        """The largest error of a prompt's logits, in multiples of what `bound` allows."""
        found = self.module.prepare(weights(), CONFIG, prompts()[prompt])().float()
        return ((found - expected(prompt)).abs() / (bound.atol + bound.rtol * expected(prompt).abs())).max().item()


@pytest.fixture
def bound(monkeypatch):
    """What the pair's workload admits where a side changes the precision."""
    with modules_of(ROOT / "ch19", monkeypatch):
        return load_workload(ROOT / "ch19/workload_dynamic_precision_switching.py").changes


@pytest.mark.parametrize("file", [SWITCHING, ALWAYS])
@torch.no_grad()
def test_the_bound_holds_on_every_held_out_prompt(monkeypatch, bound, file):
    side = Side(monkeypatch, file)
    worst = [side.worst(prompt, bound) for prompt in range(PROMPTS)]
    assert len(worst) == 200
    assert max(worst) <= 1, worst.index(max(worst))
    assert max(worst) > 0.1  # or the bound tells nothing
    share = side.narrow / side.products
    assert (share == 1) if file == ALWAYS else (0.4 < share < 0.9)


@torch.no_grad()
def test_a_policy_without_a_bound_is_caught_where_weights_are_too_inexact(monkeypatch, bound):
    """4 bits in every step but the first, whatever the model's entropy: the pair's own policy reads none of them."""
    side = Side(monkeypatch, SWITCHING, in_four_bits)
    own = side.module.POLICY
    assert max(side.worst(prompt, bound) for prompt in range(0, PROMPTS, 20)) <= 1
    assert side.narrow == 0
    monkeypatch.setattr(side.module, "POLICY", replace(own, sure=math.inf, unsure=math.inf, patience=1, bound=math.inf))
    assert min(side.worst(prompt, bound) for prompt in range(0, PROMPTS, 20)) > 1
    assert side.narrow > 0


def test_e4m3_is_within_the_policys_bound_and_4_bits_are_not(monkeypatch):
    side = Side(monkeypatch, SWITCHING)
    for name, weight in weights().items():
        if name.endswith(("gate_up", "down")):
            assert side.module.narrowed(weight)[2] < side.module.POLICY.bound < in_four_bits(weight)[2]
