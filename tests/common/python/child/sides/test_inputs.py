"""The same seed makes the same inputs in any process; another gives new values to the same storage, but for constants."""

import os
from pathlib import Path

import pytest
import torch

from common import Spec, Workload
from common.python.child.sides.inputs import PAGE, Inputs, Rand, mix, tensor_digest
from common.python.errors import BenchmarkError

CPU = torch.device("cpu")
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu]
INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64]


def a_workload(inputs, **changes):
    fields = {
        "outputs": lambda n: {"y": Spec((n,), torch.float32)},
        "reference": lambda x: x,
        "time_at": {"n": 8},
        "check_at": ({"n": 8},),
        "work": lambda n: {},
        "rtol": 0.0,
        "atol": 0.0,
    }
    return Workload(inputs=inputs, **fields | changes)


@pytest.fixture
def make(tmp_path):
    """Inputs of a function of (rand, n) at n = 8."""

    def made(inputs, seed=1, folder=tmp_path, **changes):
        return Inputs(a_workload(inputs, **changes), {"n": 8}, seed, CPU, folder)

    return made


@pytest.fixture
def rand(tmp_path):
    return Rand(1, CPU, tmp_path)


def everything(rand, n):
    return {
        "x": rand.normal(n, n),
        "nested": {"a": rand.uniform(n, dtype=torch.bfloat16), "list": [rand.integers(n, low=0, high=9), rand.permutation(n)]},
        "derived": rand.normal(n) * 2,
        "view": rand.normal(n, n).t(),
        "offset": rand.normal(n + 1)[1:],
        "path": rand.file(3 * PAGE + 5),
        "eps": 1e-5,
    }


# --- draws


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_floating_dtype_can_be_drawn(rand, dtype):
    values = rand.uniform(64, dtype=dtype, low=1.0, high=2.0)
    assert values.dtype == dtype
    assert 1.0 <= values.double().min() < values.double().max() <= 2.0


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_integer_dtype_can_be_drawn(rand, dtype):
    assert set(rand.integers(64, low=0, high=2, dtype=dtype).to(torch.int64).tolist()) == {0, 1}


def test_draws_are_of_the_stated_distribution(rand):
    normal = rand.normal(1 << 16, mean=3.0, std=2.0)
    assert (normal.mean().item(), normal.std().item()) == (pytest.approx(3, abs=0.05), pytest.approx(2, abs=0.05))
    assert set(rand.integers(4096, low=-2, high=3).tolist()) == {-2, -1, 0, 1, 2}
    assert sorted(rand.permutation(257).tolist()) == list(range(257))


PLACES = ["pinned", "pageable"]


@pytest.mark.parametrize("where", PLACES)
def test_every_draw_can_lie_on_the_host(make, where):
    def inputs(rand, n):
        return {
            "normal": rand.normal(n, where=where, dtype=torch.float8_e4m3fn),
            "uniform": rand.uniform(n, n, where=where),
            "integers": rand.integers(n, low=0, high=9, where=where),
            "permutation": rand.permutation(n, where=where),
            "made": rand.place(rand.normal(n, n).t(), where),
            "here": rand.normal(n),
        }

    one, same, other = make(inputs), make(inputs), make(inputs, seed=2)
    assert one.places == dict.fromkeys(["normal", "uniform", "integers", "permutation", "made"], where)
    assert one.has_pageable == (where == "pageable")
    assert one.digest() == same.digest() != other.digest()
    addresses = {name: tensor.data_ptr() for name, tensor in one.tensors()}
    one.rewrite(2)
    same.rewrite(2, late=True)
    assert {name: tensor.data_ptr() for name, tensor in one.tensors()} == addresses
    assert one.digest() == same.digest()
    assert sorted(one.values["permutation"].tolist()) == list(range(8))
    assert one.values["made"].is_contiguous()


def test_draws_on_the_host_are_of_the_stated_distribution(rand):
    normal = rand.normal(1 << 16, mean=3.0, std=2.0, where="pinned")
    assert (normal.mean().item(), normal.std().item()) == (pytest.approx(3, abs=0.05), pytest.approx(2, abs=0.05))


def test_what_is_made_of_draws_stays_as_it_is_if_it_is_constant(make):
    inputs = make(lambda rand, n: {"w": rand.place(rand.normal(n) * 2, "pinned"), "x": rand.normal(n)}, constants=("w",))
    w, x = (inputs.values[name].clone() for name in "wx")
    inputs.rewrite(2)
    assert torch.equal(inputs.values["w"], w)
    assert not torch.equal(inputs.values["x"], x)


def test_a_view_lies_where_its_draw_does(make):
    assert make(lambda rand, n: {"x": rand.normal(n + 1, where="pinned")[1:]}).places == {"x": "pinned"}


def test_a_state_and_an_output_say_where_they_lie(make):
    state = make(lambda rand, n: {"x": rand.normal(n, where="pageable")}, in_place=("x",), state="evolves", steps=2)
    assert {name: spec.where for name, spec in state.answers().items()} == {"y": "device", "x": "pageable"}
    offloads = make(lambda rand, n: {"x": rand.normal(n)}, outputs=lambda n: {"y": Spec((n,), torch.float32, where="pageable")})
    assert (offloads.places, offloads.is_hosted, offloads.has_pageable) == ({}, True, True)


def test_a_place_that_does_not_exist_is_refused(rand):
    for make in (
        lambda: rand.normal(4, where="pined"),
        lambda: rand.place(torch.zeros(4), "pined"),
        lambda: Spec((4,), torch.int8, "pined"),
    ):
        with pytest.raises(BenchmarkError, match=r"^where='pined'; expected device or pinned or pageable$"):
            make()


def test_a_draw_on_the_host_is_not_edited_there(make):
    def edits(rand, n):
        x = rand.normal(n, where="pinned")
        x[0] = 0
        return {"x": x}

    def edits_before(rand, n):
        x = rand.normal(n)
        x[0] = 0
        return {"x": rand.place(x, "pinned")}

    def edits_behind(rand, n):
        return {"x": rand.place(rand.normal(n), "device").add_(1)}

    sentence = r"edited a tensor of shape \(8,\) where it was placed; expected it to be edited on the device, and then rand.place"
    for edited in (edits, edits_behind):
        with pytest.raises(BenchmarkError, match=sentence):
            make(edited)
    assert make(edits_before).values["x"][0] == 0


def test_neighbouring_seeds_and_draws_have_nothing_to_do_with_each_other(tmp_path):
    rands = [Rand(seed, CPU, tmp_path) for seed in range(4)]
    draws = torch.stack([rand.normal(1 << 14) for rand in rands for _ in range(4)])
    correlations = torch.corrcoef(draws).fill_diagonal_(0)
    assert correlations.abs().max() < 5 / 2**7  # five times the scatter of that of 2^14 independent values


def test_seeds_of_draws_do_not_collide():
    low = {mix(seed, index) & 0xFFFFFFFF for seed in range(1000) for index in range(16)}  # the generator takes 32 bits
    assert len(low) == 16000


def test_a_further_draw_leaves_those_before_it_as_they_were(make):
    alone = make(lambda rand, n: {"x": rand.normal(n)})
    followed = make(lambda rand, n: {"x": rand.normal(n), "z": rand.normal(n)})
    assert torch.equal(alone.values["x"], followed.values["x"])


# --- inputs of a seed


def test_any_process_can_make_the_inputs_of_any_call_again(make, tmp_path):
    """What worker and referee do: one comes from other calls, the other starts there."""
    (tmp_path / "other").mkdir()
    there, here = make(everything, seed=5), make(everything, seed=5, folder=tmp_path / "other")
    for seed in (11, 12):
        there.rewrite(seed)
    here.rewrite(12)
    assert there.digest() == here.digest()


def test_a_seed_gives_every_live_input_new_values_in_the_storage_it_has(make):
    inputs = make(everything)
    before = {name: (tensor.data_ptr(), tensor.clone()) for name, tensor in inputs.tensors()}
    inputs.rewrite(2)
    now = dict(inputs.tensors())
    assert now.keys() == {"x", "nested.a", "nested.list.0", "nested.list.1", "derived", "view", "offset"}
    for name, (address, values) in before.items():
        assert now[name].data_ptr() == address, name
        assert not torch.equal(now[name], values), name


def test_the_first_values_come_back_with_their_seed(make):
    inputs = make(everything, seed=7)
    inputs.rewrite(8)
    inputs.rewrite(7)
    fresh = dict(make(everything, seed=7).tensors())
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in inputs.tensors())


def edited(rand, n):
    w = rand.normal(n, n)
    w[0] = 7
    w.mul_(2)
    return {"x": rand.normal(n), "w": w}


def permuted(rand, n):
    return {"w": rand.normal(n, n)[rand.permutation(n)], "x": rand.normal(n)}


CONSTANTS = {
    "plain": lambda rand, n: {"w": rand.normal(n, n), "x": rand.normal(n)},
    "a view": lambda rand, n: {"w": rand.normal(n, n).t(), "x": rand.normal(n)},
    "a slice": lambda rand, n: {"x": rand.normal(n), "w": rand.normal(2 * n)[::2]},
    "edited": edited,
    "derived": lambda rand, n: {"w": rand.normal(n, n) * 2, "x": rand.normal(n)},
    "gathered": permuted,
    "nested": lambda rand, n: {"x": rand.normal(n), "w": {"layers": [rand.normal(n), rand.normal(n)]}},
    "behind a file": lambda rand, n: {"path": rand.file(PAGE), "w": rand.normal(n), "x": rand.normal(n)},
}


@pytest.mark.parametrize("how", CONSTANTS)
def test_a_constant_keeps_its_values_however_it_is_made(make, how):
    inputs = make(CONSTANTS[how], constants=("w",))
    before = {name: tensor.clone() for name, tensor in inputs.tensors()}
    for seed in (2, 3):
        inputs.rewrite(seed)
        for name, tensor in inputs.tensors():
            assert torch.equal(tensor, before[name]) == name.startswith("w"), name


def from_one_draw(rand, n):
    w = rand.normal(n, n)
    return {"w": w, "x": w[0] + rand.normal(n), "same": w.t()}


@pytest.mark.parametrize("how", [*CONSTANTS, "from one draw"])
def test_a_state_that_evolves_is_what_steps_made_of_it_and_nothing_else_is(make, how):
    stated = {"in_place": ("w",), "state": "evolves", "steps": 2}
    inputs, untouched = (make({**CONSTANTS, "from one draw": from_one_draw}[how], **stated) for _ in range(2))
    for tensor in inputs.state().values():
        tensor.mul_(-3).add_(1)
    evolved = {name: tensor.clone() for name, tensor in inputs.state().items()}
    assert evolved
    for seed in (2, 3):
        inputs.rewrite(seed)
        untouched.rewrite(seed)
        assert all(torch.equal(tensor, evolved[name]) for name, tensor in inputs.state().items())
        assert inputs.digest() == untouched.digest()
    assert not torch.equal(inputs.values["x"], make(CONSTANTS.get(how, from_one_draw)).values["x"])


def test_only_a_state_that_evolves_is_told_and_compared_as_one(make):
    def nested(rand, n):
        return {"x": rand.normal(n), "w": {"m": rand.normal(n), "t": [torch.zeros(2, dtype=torch.int64)]}}

    assert make(nested, in_place=("w",)).state() == {}
    evolving = make(nested, in_place=("w",), state="evolves", steps=2)
    assert list(evolving.state()) == ["w.m", "w.t.0"]
    assert evolving.answers() == {
        "y": Spec((8,), torch.float32),
        "w.m": Spec((8,), torch.float32),
        "w.t.0": Spec((2,), torch.int64),
    }


def test_inputs_that_draw_otherwise_the_second_time_are_refused(make):
    sizes = iter([8, 9])
    inputs = make(lambda rand, n: {"x": rand.normal(next(sizes))})
    with pytest.raises(BenchmarkError, match=r"draw 0 changed from \(8,\) to \(9,\); expected inputs\(\) to draw the same again"):
        inputs.rewrite(2)


# --- files


def test_a_file_has_the_bytes_of_its_seed_and_a_rewrite_changes_some_of_its_pages(make, tmp_path):
    size = 200 * PAGE + 17
    inputs = make(lambda rand, n: {"path": rand.file(size)})
    path = inputs.values["path"]
    first = path.read_bytes()
    inputs.rewrite(2)
    second = path.read_bytes()
    changed = [page for page in range(201) if first[page * PAGE : (page + 1) * PAGE] != second[page * PAGE : (page + 1) * PAGE]]
    assert len(first) == len(second) == size
    assert 30 <= len(changed) <= 64
    inputs.rewrite(3)
    inputs.rewrite(2)
    assert path.read_bytes() == second


def test_a_constant_file_is_not_rewritten(make):
    inputs = make(lambda rand, n: {"path": rand.file(PAGE), "live": rand.file(PAGE)}, constants=("path",))
    before = {name: inputs.values[name].read_bytes() for name in ("path", "live")}
    inputs.rewrite(2)
    assert {name: inputs.values[name].read_bytes() == before[name] for name in before} == {"path": True, "live": False}


def test_files_are_removed_when_they_are_done_with(make, tmp_path):
    inputs = make(everything)
    assert [path.parent for path in inputs.values.values() if isinstance(path, Path)] == [tmp_path]
    inputs.remove_files()
    inputs.remove_files()
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_leave_the_page_cache(make, tmp_path):
    inputs = make(lambda rand, n: {"path": rand.file(64 * PAGE)})
    if os.statvfs(tmp_path).f_fsid == os.statvfs("/dev/shm").f_fsid:
        pytest.skip("the temporary folder is in memory; its files cannot leave it")
    inputs.rewrite(2)
    assert inputs.files[0].leave_cache()


# --- digests


def flipped(values, *positions):
    changed = values.clone()
    for position in positions:
        changed[position] *= -1
    return changed


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_digest_tells_what_a_side_might_change(rand, dtype):
    values = rand.uniform(1 << 12, dtype=dtype, low=1.0, high=2.0)
    others = {
        "negated": -values,
        "two signs": flipped(values, 5, 9),
        "one bit": torch.cat([values[:-1].view(torch.uint8), (values[-1:].view(torch.uint8) ^ 1)]).view(dtype),
        "swapped": values.roll(1),
        "reversed": values.flip(0),
        "zeros": torch.zeros_like(values),
    }
    digests = {tensor_digest(values), *(tensor_digest(other) for other in others.values())}
    assert len(digests) == 1 + len(others)


@pytest.mark.parametrize("cut", [slice(1, None), slice(1, 8), slice(3, None, 2), slice(0, 0)], ids=str)
def test_a_digest_is_of_values_wherever_they_lie(rand, cut):
    values = rand.normal(21)
    assert tensor_digest(values[cut]) == tensor_digest(values[cut].clone())


def test_a_digest_covers_every_input(make):
    inputs = make(everything)
    seen = {inputs.digest()}
    for _, tensor in inputs.tensors():
        tensor[(0,) * tensor.ndim] += 1
        seen.add(inputs.digest())
    inputs.values["path"].write_bytes(b"other")
    seen.add(inputs.digest())
    inputs.values["eps"] = 1e-6
    seen.add(inputs.digest())
    assert len(seen) == 1 + 7 + 2
