"""Values get to the host chunk by chunk, the same ones wherever they go; words that come late are wrong until they are written."""

import pytest
import torch

from common import Spec, Workload
from common.python.child.sides import host_memory
from common.python.child.sides.host_memory import HostWriter, bytes_of, empty_in, hold_back, place_of
from common.python.child.sides.inputs import DeviceInputs, Inputs

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def numbered(start, part):
    part.copy_(torch.arange(start, start + part.numel(), device=part.device))


@pytest.mark.parametrize("where", ["device", "pinned", "pageable"])
def test_all_places_of_a_cpu_are_its_ordinary_memory(where):
    tensor = empty_in(where, (2, 3), torch.float16, CPU)
    assert (tensor.device, tensor.shape, tensor.dtype, tensor.is_pinned()) == (CPU, (2, 3), torch.float16, False)


@pytest.mark.parametrize("elements", [0, 1, 7, 8, 9, 31])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_values_are_made_in_chunks(monkeypatch, elements, dtype):
    monkeypatch.setattr(host_memory, "_CHUNK", 8)
    monkeypatch.setattr(host_memory, "_buffer", host_memory._buffer.__wrapped__)
    sizes = []

    def make(start, part):
        sizes.append(part.numel())
        numbered(start, part)

    to = torch.zeros(elements, dtype=dtype)
    HostWriter(CPU).write(to, make)
    assert to.tolist() == list(range(elements))
    assert max(sizes, default=0) <= 8
    assert sum(sizes) == elements


def held_back(elements, *, small, dtype=torch.int64):
    """What a part of numbers becomes, where it shall go, and its late words."""
    part, target = torch.arange(elements).to(dtype), torch.zeros(elements, dtype=dtype)
    late = hold_back(part, target, small=small)
    target.copy_(part)
    return target, late


def test_a_large_part_lacks_one_word_of_each_page_until_it_is_written():
    target, (late,) = held_back(4096, small=False)
    wrong = (target != torch.arange(4096)).nonzero().flatten()
    assert (wrong // 512).tolist() == list(range(8))
    assert set(target.tolist()) <= set(range(4096))  # an index among them stays one
    late.write()
    assert torch.equal(target, torch.arange(4096))


def test_a_small_part_is_wrong_everywhere_until_it_is_written():
    target, (late,) = held_back(64, small=True)
    assert bool((target != torch.arange(64)).all())
    late.write()
    assert torch.equal(target, torch.arange(64))


def test_nobody_knows_which_words_come_late():
    places = [tuple(held_back(4096, small=False)[1][0].positions.tolist()) for _ in range(3)]
    assert len(set(places)) == 3


@pytest.mark.parametrize(("elements", "dtype"), [(3, torch.float16), (7, torch.uint8), (0, torch.int64)], ids=str)
def test_less_than_a_word_is_not_held_back(elements, dtype):
    target, late = held_back(elements, small=True, dtype=dtype)
    assert late == []
    assert target.tolist() == list(range(elements))


def test_what_is_behind_the_last_word_is_there_at_once():
    target, (late,) = held_back(19, small=True, dtype=torch.uint8)
    assert target[16:].tolist() == [16, 17, 18]
    assert target[:16].tolist() != list(range(16))
    late.write()
    assert target.tolist() == list(range(19))


def test_a_cpu_has_no_late_words():
    late = []
    HostWriter(CPU).write(torch.zeros(4096), numbered, late)
    assert late == []


# --- on a GPU


def placed_workload(**changes):
    fields = {
        "inputs": lambda rand, n: {
            "x": rand.normal(n, where="pinned"),
            "i": rand.permutation(n, where="pageable"),
            "f8": rand.normal(n, where="pinned", dtype=torch.float8_e4m3fn),
            "made": rand.place(rand.uniform(n, 2)[:, 0] + 1, "pinned"),
            "y": rand.uniform(n),
        },
        "outputs": lambda n: {"z": Spec((n,), torch.float32)},
        "reference": lambda x: x,
        "time_at": {"n": 8},
        "check_at": ({"n": 8},),
        "work": lambda n: {},
        "rtol": 0.0,
        "atol": 0.0,
    }
    return Workload(**fields | changes)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [3, 1000, (1 << 22) + 5])
def test_the_referee_has_the_same_values_on_the_device(tmp_path, n):
    mine, theirs = (kind(placed_workload(), {"n": n}, 1, CUDA, tmp_path) for kind in (Inputs, DeviceInputs))
    assert {name: place_of(tensor) for name, tensor in mine.tensors()} == {
        "x": "pinned",
        "i": "pageable",
        "f8": "pinned",
        "made": "pinned",
        "y": "device",
    }
    assert {place_of(tensor) for _, tensor in theirs.tensors()} == {"device"}
    first = mine.digest()
    assert first == theirs.digest()
    for inputs in (mine, theirs):
        inputs.rewrite(2)
    assert mine.digest() == theirs.digest() != first
    assert sorted(mine.values["i"].tolist()) == list(range(n))


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1000, (1 << 22) + 5])
def test_late_words_are_written_by_a_kernel_or_by_the_host(tmp_path, n):
    from common.python.child.device.helpers import device_helpers

    inputs, whole = (Inputs(placed_workload(), {"n": n}, 1, CUDA, tmp_path) for _ in range(2))
    whole.rewrite(7)
    inputs.rewrite(7, late=True)
    assert {late.is_pinned for late in inputs.late_words} == {True, False}
    assert all(not torch.equal(bytes_of(inputs.values[name]), bytes_of(whole.values[name])) for name in ("x", "i", "f8", "made"))
    for late in inputs.late_words:
        if late.is_pinned:
            device_helpers().write_words(late.words, late.positions, late.values)
        else:
            late.write()
    torch.cuda.synchronize()
    assert inputs.digest() == whole.digest()


@pytest.mark.gpu
def test_what_is_made_on_the_host_is_refused(tmp_path):
    from common.python.errors import BenchmarkError

    workload = placed_workload(inputs=lambda rand, n: {"x": 2 * rand.normal(n, where="pinned")})
    with pytest.raises(BenchmarkError, match=r"input x was made on the host; expected it to be made of draws on the device"):
        Inputs(workload, {"n": 8}, 1, CUDA, tmp_path)


@pytest.mark.gpu
def test_a_state_on_the_host_stays_there(tmp_path):
    workload = placed_workload(in_place=("x",), state="evolves", steps=2)
    inputs = Inputs(workload, {"n": 8}, 1, CUDA, tmp_path)
    assert inputs.values["x"].is_pinned()
    assert inputs.answers()["x"].where == "pinned"


@pytest.mark.gpu
def test_chunks_lie_outside_torchs_allocator(tmp_path):
    Inputs(placed_workload(), {"n": 8}, 1, CUDA, tmp_path)
    before = torch.cuda.memory_allocated()
    to = empty_in("pinned", (1 << 20,), torch.float32, CUDA)
    torch.cuda.reset_peak_memory_stats()
    HostWriter(CUDA).write(to, lambda _, part: part.fill_(1))
    assert torch.cuda.max_memory_allocated() == before
