"""Files of the tree as inputs: found by name, held to their digest, the same in every call."""

import json

import pytest
import torch

from common import Spec, Workload
from common.models.train_byte_lm import write
from common.python.child.sides import assets
from common.python.child.sides.assets import ASSETS, read_asset
from common.python.child.sides.inputs import Inputs, Rand
from common.python.errors import BenchmarkError

CPU = torch.device("cpu")
TENSORS = {"layers.0.w": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3), "norm": torch.ones(3)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A registry of one asset, in place of the tree's."""
    folder = tmp_path / "assets"
    write(folder, "small", TENSORS, {})
    monkeypatch.setattr(assets.read_asset, "__defaults__", (folder,))
    return folder


def inputs_of(inputs, tmp_path, **changes):
    workload = Workload(
        inputs=inputs,
        outputs=lambda n: {"y": Spec((n,), torch.float32)},
        reference=lambda x: x,
        time_at={"n": 3},
        check_at=({"n": 3},),
        work=lambda n: {},
        rtol=0.0,
        atol=0.0,
        **changes,
    )
    return Inputs(workload, {"n": 3}, 1, CPU, tmp_path)


def test_an_asset_is_its_tensors_whatever_the_seed(folder, tmp_path):
    for seed in (1, 2):
        found = Rand(seed, CPU, tmp_path).asset("small")
        assert found.keys() == TENSORS.keys()
        for name, tensor in TENSORS.items():
            assert found[name].dtype == tensor.dtype
            assert torch.equal(found[name], tensor)


def test_a_constant_asset_stays_as_it_is_and_is_recorded(folder, tmp_path):
    inputs = inputs_of(lambda rand, n: {"x": rand.normal(n), "w": rand.asset("small")}, tmp_path, constants=("w",))
    before, x = inputs.values["w"]["norm"], inputs.values["x"].clone()
    digest = inputs.digest()
    inputs.rewrite(2)
    assert inputs.values["w"]["norm"] is before
    assert not torch.equal(inputs.values["x"], x)
    assert inputs.digest() != digest
    assert inputs.assets == {"small": json.loads((folder / "assets.json").read_text())["small"]["sha256"]}


def test_other_draws_are_those_of_a_workload_without_the_asset(folder, tmp_path):
    with_asset = inputs_of(lambda rand, n: {"w": rand.asset("small"), "x": rand.normal(n)}, tmp_path, constants=("w",))
    without = inputs_of(lambda rand, n: {"x": rand.normal(n)}, tmp_path)
    assert torch.equal(with_asset.values["x"], without.values["x"])


def test_an_asset_as_a_live_input_is_refused(folder, tmp_path):
    with pytest.raises(BenchmarkError, match=r"input w.layers.0.w is asset 'small', the same in every call; expected 'w' in constants"):
        inputs_of(lambda rand, n: {"w": rand.asset("small")}, tmp_path)


def test_a_state_may_begin_as_an_asset(folder, tmp_path):
    begin = {"x": None, "w": None}
    inputs = inputs_of(lambda rand, n: {"x": rand.normal(n), "w": rand.asset("small")}, tmp_path, in_place=("w",), state="evolves", steps=2)
    assert inputs.values.keys() == begin.keys()
    inputs.values["w"]["norm"].zero_()
    inputs.rewrite(2)
    assert not inputs.values["w"]["norm"].any()
    assert Rand(1, CPU, tmp_path).asset("small")["norm"].all()


def test_a_tensor_that_was_made_of_an_asset_is_an_input_like_any_other(folder, tmp_path):
    inputs = inputs_of(lambda rand, n: {"x": rand.asset("small")["norm"] * rand.normal(n)}, tmp_path)
    before = inputs.values["x"].clone()
    inputs.rewrite(2)
    assert not torch.equal(inputs.values["x"], before)


def test_a_name_that_is_not_registered_is_one_sentence(folder):
    with pytest.raises(BenchmarkError, match=r"assets.json: found no asset 'large'; expected one of small$"):
        read_asset("large", folder)


def test_a_file_that_is_missing_is_one_sentence(folder):
    (folder / "small.safetensors").unlink()
    with pytest.raises(BenchmarkError, match=r"small.safetensors: found no file; expected asset 'small' with SHA-256 [0-9a-f]{64}$"):
        read_asset("small", folder)


def test_a_file_that_was_changed_is_one_sentence(folder):
    path = folder / "small.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        BenchmarkError, match=r"small.safetensors: found SHA-256 [0-9a-f]{64}; expected [0-9a-f]{64}, which assets.json has$"
    ):
        read_asset("small", folder)


def test_every_registered_asset_of_the_tree_can_be_read():
    registry = ASSETS / "assets.json"
    names = json.loads(registry.read_text()) if registry.exists() else {}
    for name in names:
        card = json.loads((ASSETS / f"{name}.json").read_text())
        assert card["sha256"] == read_asset(name).digest
