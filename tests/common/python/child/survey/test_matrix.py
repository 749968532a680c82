"""The rate of mma.sync is that of a loop whose totals are known; wrong ones make it missing; files without it are read as before."""

import ctypes
import json
from pathlib import Path

import pytest
import torch

from common.python.child.device.sampler import Sample
from common.python.child.survey import gpu, matrix
from common.python.child.survey.host import Findings
from common.python.child.survey.matrix import MMA_SYNC, MatrixSurvey, MmaLoop, notes_on
from common.python.machine import ceilings as machine_ceilings
from common.python.machine.ceilings import MachineCeilings
from tests.support.ptx import Run
from tests.support.synthetic_ceilings import a_ceiling, synthetic_ceilings

PTX = Path(gpu.__file__).with_suffix(".ptx")
CPU = torch.device("cpu")
SMS, ROUNDS = 2, 3


class HostMemory:
    """The words of this process, by their addresses."""

    def __getitem__(self, address):
        return ctypes.c_uint32.from_address(address).value

    def __setitem__(self, address, word):
        ctypes.c_uint32.from_address(address).value = word


class Launches:
    """Stands in for the loaded kernels: what they are asked to do is done by Run, with `missed` rounds fewer."""

    def __init__(self, missed=0):
        self.missed = missed
        self.done = []

    def launch(self, kernel, blocks, threads, source, target, rounds):
        run = Run(PTX, kernel, (source, target, rounds - self.missed), HostMemory())
        run.launch(blocks, threads)
        self.done.append((blocks, threads, run))


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(matrix, "_MMA_ROUNDS", ROUNDS)
    monkeypatch.setattr(matrix, "_MMA_LAUNCHES", ((32, 1), (64, 2)))


def surveyed(monkeypatch, kernels, findings, ns=1e3):
    """Measure mma.sync on two SMs where every launch takes `ns`, and half as long again in a row."""

    def samples(timer, call, *, pause_s):
        call()
        return [Sample(ns, 1e9)] * 12

    monkeypatch.setattr(MatrixSurvey, "_sustained", lambda self, call, call_ns: [Sample(1.5 * call_ns, 1e9)] * 11)
    MatrixSurvey(CPU, SMS, (9, 0), kernels, samples)._mma_sync(findings, None)
    return {ceiling.mode: ceiling for ceiling in findings.ceilings if ceiling.name == MMA_SYNC}


# --- the loop, on a machine that runs a warp after the other


@pytest.mark.parametrize(("threads", "blocks"), [(32, 1), (64, 2)])
def test_the_totals_of_a_warp_are_what_torch_multiplies(threads, blocks, short):
    loop = MmaLoop.made(CPU, threads, blocks)
    kernels = Launches()
    loop.call(kernels)()
    ((_, _, run),) = kernels.done

    assert loop.wrong() == ""
    assert run.loads == {loop.source.data_ptr() + 4 * i: blocks for i in range(16 * threads)}
    assert run.stores == {loop.target.data_ptr() + 4 * i: 1 for i in range(blocks * threads)}


def test_the_expected_totals_are_those_of_whole_matrices():
    loop = MmaLoop.made(CPU, 32, 1)
    bits = loop.source.view(torch.int16).int().bitwise_and(0xFFFF).tolist()
    a, b = torch.zeros(2, 16, 16, dtype=torch.float64), torch.zeros(4, 16, 8, dtype=torch.float64)
    for lane in range(32):
        g, t = divmod(lane, 4)
        values = torch.tensor([word << 16 for word in bits[lane]], dtype=torch.int64).to(torch.int32).view(torch.float32)
        for place in range(32):
            word, i = divmod(place, 2)
            if word < 8:
                a[word // 4, g + 8 * (word % 2), 2 * t + i + 8 * (word % 4 // 2)] = values[place]
            else:
                b[(word - 8) // 2, 2 * t + i + 8 * (word % 2), g] = values[place]
    products = torch.einsum("aik,bkj->", a, b)

    assert loop._warp_totals().item() == pytest.approx(loop.rounds * products.item())


@pytest.mark.parametrize("missed", [1, ROUNDS - 1])
def test_a_loop_that_leaves_rounds_out_is_missing_and_says_so(missed, short, monkeypatch):
    findings = Findings()
    surveyed(monkeypatch, Launches(missed), findings)

    assert findings.ceilings == []
    assert "launched with 32 threads, 1 blocks an SM: found a warp's total " in findings.missing[MMA_SYNC]


@pytest.mark.parametrize("total", [0.0, float("nan"), float("inf")])
def test_no_other_total_passes(total):
    loop = MmaLoop.made(CPU, 32, 1)
    loop.target.fill_(total)

    assert loop.wrong()


def test_one_wrong_warp_of_many_is_enough():
    loop = MmaLoop.made(CPU, 64, 100)
    totals = loop._warp_totals()
    loop.target.copy_((totals / 32).float().repeat_interleave(32).expand(100, 64))
    assert loop.wrong() == ""

    loop.target[57, 40] += float(totals.square().mean().sqrt()) / 50
    assert "found a warp's total" in loop.wrong()


# --- the rate


def test_the_rate_is_2_x_16_x_8_x_16_flop_an_instruction_over_the_time(short, monkeypatch):
    findings = Findings()
    kernels = Launches()
    found = surveyed(monkeypatch, kernels, findings)
    flop = 2 * SMS * 64 // 32 * ROUNDS * 8 * 2 * 16 * 8 * 16  # 2 blocks of 64 threads on each of 2 SMs

    assert {(blocks, threads) for blocks, threads, _ in kernels.done} == {(SMS, 32), (2 * SMS, 64)}
    assert found["burst"].value.estimate == pytest.approx(flop / 1e-6)
    assert found["sustained"].value.estimate == pytest.approx(flop / 1.5e-6)
    assert {(each.how, each.unit, each.sm_clock_hz) for each in found.values()} == {("64 threads, 2 blocks an SM", "flop/s", 1e9)}
    assert (found["burst"].l2, found["sustained"].l2) == ("clean", "hot")
    assert findings.notes == [f"mma.sync reaches {flop / (2 * SMS * 1e-6 * 1e9):.0f} FMAs a cycle on each of {SMS} SMs"]


def test_a_note_gives_fmas_a_cycle_and_the_share_of_the_products_ceiling():
    mma_sync, bf16 = a_ceiling(MMA_SYNC, 500e12, "flop/s", sm_clock_hz=1.25e9), a_ceiling("bf16", 800e12, "flop/s")

    assert notes_on(mma_sync, bf16, 100) == ["mma.sync reaches 2000 FMAs a cycle on each of 100 SMs, 62 % of the ceiling of bf16"]
    assert notes_on(mma_sync.model_copy(update={"sm_clock_hz": None}), bf16, 100) == ["mma.sync reaches 62 % of the ceiling of bf16"]
    assert notes_on(mma_sync.model_copy(update={"sm_clock_hz": None}), None, 100) == []


def test_a_gpu_without_it_says_what_it_needs(monkeypatch):
    findings = Findings()
    monkeypatch.setattr(matrix, "DeviceTimer", lambda device, state: None)
    monkeypatch.setattr(MatrixSurvey, "_products", lambda self, findings, timer, name: None)
    MatrixSurvey(CPU, SMS, (7, 5), Launches(), None).measure(findings)

    assert findings.missing[MMA_SYNC] == "needs compute capability 8.0; this GPU has 7.5"


# --- what is kept


def test_it_is_kept_and_read_back_and_a_file_without_it_is_read_too(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_ceilings, "MACHINES", tmp_path)
    older = synthetic_ceilings()
    newer = synthetic_ceilings(ceilings=(*older.ceilings, a_ceiling(MMA_SYNC, 500e12, "flop/s", l2="clean")))
    path = machine_ceilings.keep_ceilings(newer)
    assert MachineCeilings.model_validate(json.loads(path.read_text())) == newer
    assert MMA_SYNC in path.read_text()

    document = json.loads(path.read_text())
    document["ceilings"] = [each for each in document["ceilings"] if each["name"] != MMA_SYNC]
    assert MachineCeilings.model_validate(document) == older


# --- on a GPU


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    return gpu.GpuSurvey(0, tmp_path_factory.mktemp("survey"))


@pytest.mark.gpu
class TestOnAGpu:
    def test_every_launch_is_right(self, survey):
        for threads, resident in matrix._MMA_LAUNCHES:
            loop = MmaLoop.made(survey._device, threads, resident * survey._sms)
            loop.call(survey._kernels)()
            assert loop.wrong() == ""

    def test_it_takes_twice_as_long_for_twice_the_rounds(self, survey):
        times = []
        for rounds in (1, 2):
            loop = MmaLoop.made(survey._device, 256, 2 * survey._sms)
            loop = MmaLoop(loop.source, loop.target, rounds * loop.rounds)
            samples = survey._samples(gpu.DeviceTimer(survey._device, "hot"), loop.call(survey._kernels), pause_s=0.02)
            times.append(min(sample.ns * sample.sm_clock_hz for sample in samples))

        assert times[1] / times[0] == pytest.approx(2, rel=0.05)
