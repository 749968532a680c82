"""The kernels that find a GPU's ceilings do what they say, thread by thread; samples become a ceiling; each topic answers on a GPU."""

import functools
import random
import re
import subprocess
from pathlib import Path

import pytest
import torch

from common.python.child.device.sampler import Sample
from common.python.child.survey import gpu, host
from common.python.child.survey.host import Findings, HostSurvey, Way, in_rounds, median_interval, read_storage, samples_of
from common.python.errors import SideFailure
from common.python.machine.description import find_tool
from common.python.processes import messages
from common.python.run.peak import TOPICS
from tests.support.ptx import Run

PTX = Path(gpu.__file__).with_suffix(".ptx")
A, B, C = 1 << 20, 2 << 20, 3 << 20  # addresses
THREADS, TILES = 64, 8
THREE = 0x40400000  # 3.0f


def words(address, count, seed):
    source = random.Random(seed)
    return {address + 4 * i: source.getrandbits(32) for i in range(count)}


# --- the kernels, on a machine that runs a thread after the other


@pytest.mark.parametrize("blocks", [1, 3, TILES])
def test_a_copy_reads_and_writes_every_word_once(blocks):
    count = TILES * THREADS * 128 // 4
    memory = words(A, count, 1)
    run = Run(PTX, "stream_copy", (A, C, TILES - 1, TILES), memory)
    run.launch(blocks, THREADS)

    assert all(memory[A + 4 * i] == memory[C + 4 * i] for i in range(count))
    assert run.loads == {A + 4 * i: 1 for i in range(count)}
    assert run.stores == {C + 4 * i: 1 for i in range(count)}


def test_a_read_takes_every_word_once_and_writes_none():
    count = TILES * THREADS * 128 // 4
    run = Run(PTX, "stream_read", (A, TILES - 1, TILES), words(A, count, 2))
    run.launch(3, THREADS)

    assert run.loads == {A + 4 * i: 1 for i in range(count)}
    assert not run.stores


def test_a_block_without_a_tile_writes_nothing():
    run = Run(PTX, "stream_read", (A, 0, 1), words(A, THREADS * 128 // 4, 3))
    run.launch(2, THREADS)

    assert not run.stores


def test_a_small_buffer_is_passed_over_as_often_as_it_is_told():
    count = 2 * THREADS * 128 // 4
    run = Run(PTX, "stream_read", (A, 1, 6), words(A, count, 4))
    run.launch(4, THREADS)

    assert run.loads == {A + 4 * i: 3 for i in range(count)}


def test_a_write_leaves_no_word_as_it_was():
    count = TILES * THREADS * 128 // 4
    memory = dict.fromkeys(range(C, C + 4 * count, 4), 0)
    run = Run(PTX, "stream_write", (C, TILES - 1, TILES), memory)
    run.launch(3, THREADS)

    assert run.stores == {C + 4 * i: 1 for i in range(count)}
    assert sum(word == 0 for word in memory.values()) <= gpu._MOST_ZERO_WORDS
    assert len(set(memory.values())) > count / 16  # a word is stored 8 times; they differ otherwise


def test_a_triad_adds_three_times_the_second_to_the_first():
    count = TILES * THREADS * 64 // 4
    values = torch.randn(2, count, generator=torch.Generator().manual_seed(5))
    bits = values.view(torch.int32).tolist()
    memory = {address + 4 * i: bits[row][i] & 0xFFFFFFFF for row, address in enumerate((A, B)) for i in range(count)}
    run = Run(PTX, "stream_triad", (A, B, C, TILES - 1, TILES), memory)
    run.launch(3, THREADS)

    result = torch.tensor([memory[C + 4 * i] for i in range(count)]).to(torch.int32).view(torch.float32)
    torch.testing.assert_close(result, values[0] + 3 * values[1])
    assert run.loads == {address + 4 * i: 1 for address in (A, B) for i in range(count)}
    assert run.stores == {C + 4 * i: 1 for i in range(count)}


class Launches:
    """Stands in for the loaded kernels: what they are asked to do is done by Run."""

    def __init__(self, memory):
        self.memory = memory
        self.done = []

    def launch(self, kernel, blocks, threads, *arguments):
        run = Run(PTX, kernel, arguments, self.memory)
        run.launch(blocks, threads)
        self.done.append((kernel, run))


class Buffer:
    def __init__(self, address):
        self.data_ptr = lambda: address


@pytest.mark.parametrize("what", ["read", "write", "copy", "triad"])
@pytest.mark.parametrize("launch", gpu._LAUNCHES[-3:], ids=lambda launch: launch.how)
def test_16_bytes_a_thread_reach_every_word_as_often_as_told(launch, what):
    size, passes = 2 * 16 * launch.threads, 2
    count = size // 4
    values = torch.randn(2, count, generator=torch.Generator().manual_seed(6))
    bits = values.view(torch.int32).tolist()
    memory = {address + 4 * i: bits[row][i] & 0xFFFFFFFF for row, address in enumerate((A, B)) for i in range(count)}
    memory |= dict.fromkeys(range(C, C + size, 4), 0)
    read, written = {"read": ((A,), ()), "write": ((), (C,)), "copy": ((A,), (C,)), "triad": ((A, B), (C,))}[what]
    kernels = Launches(memory)
    gpu._Stream(f"stream_{what}", tuple(map(Buffer, read + written)), size, passes).call(kernels, 1, launch)()

    ((kernel, run),) = kernels.done
    assert kernel == f"vector_{what}"
    assert run.loads == {address + 4 * i: passes for address in read for i in range(count)}
    assert run.stores == {address + 4 * i: passes for address in written for i in range(count)}
    result = torch.tensor([memory[C + 4 * i] for i in range(count)]).to(torch.int32).view(torch.float32)
    if what == "copy":
        assert torch.equal(result, values[0])
    if what == "triad":
        torch.testing.assert_close(result, values[0] + 3 * values[1])
    if what == "write":
        assert len(set(result.view(torch.int32).tolist())) > count / 2


# --- the kernels, as machine code


def assembled(architecture, folder):
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas: nothing can assemble the kernels")
    binary = folder / "ceilings.cubin"
    subprocess.run([ptxas, f"-arch={architecture}", PTX, "-o", binary], check=True, capture_output=True)
    return binary


@pytest.fixture(scope="module")
def machine_code(tmp_path_factory):
    """What nvdisasm says of the kernels, by architecture."""
    nvdisasm = find_tool("nvdisasm")
    if nvdisasm is None:
        pytest.skip("no nvdisasm: nothing can read the machine code")

    @functools.cache
    def text(architecture):
        binary = assembled(architecture, tmp_path_factory.mktemp(architecture))
        return subprocess.run([nvdisasm, "-c", binary], check=True, capture_output=True, text=True).stdout

    return text


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_every_kernel_assembles(architecture, tmp_path):
    binary = assembled(architecture, tmp_path).read_bytes()

    assert all(name.encode() in binary for name in gpu._KERNELS)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("kernel", "pattern", "count"),
    [
        ("stream_read", r"LDG\.\S*128", 8),
        ("stream_copy", r"LDG\.\S*128", 8),
        ("stream_copy", r"STG\.\S*128", 8),
        ("stream_write", r"STG\.\S*128", 8),
        ("stream_triad", r"LDG\.\S*128", 8),
        ("vector_read", r"LDG\.\S*128", 1),
        ("vector_write", r"STG\.\S*128", 1),
        ("vector_copy", r"LDG\.\S*128", 1),
        ("vector_copy", r"STG\.\S*128", 1),
        ("vector_triad", r"LDG\.\S*128", 2),
        ("shared_read", r"LDS\.128", 8),
        ("mma_sync", r"HMMA\.16816\.F32\.BF16", 8),
        ("mma_sync", r"STG\.", 1),
        ("mma_sync", r"LDL|STL", 0),
    ],
)
def test_the_assembler_leaves_nothing_out(kernel, pattern, count, architecture, machine_code):
    body = machine_code(architecture).split(f"\n{kernel}:\n")[1].split(".section")[0]
    # shared_read begins with one load of its own from global memory, which the pattern does not match

    assert len(re.findall(pattern, body)) == count


# --- from samples to a ceiling


def test_the_interval_of_a_median_leaves_out_what_chance_leaves_out():
    values = [float(value) for value in range(1, 13)]  # P(at most 2 of 12 below the median) is 0.019, at most 3 is 0.073
    found = median_interval(values[::-1])

    assert (found.low, found.estimate, found.high) == (3.0, 6.5, 10.0)
    assert median_interval([3.0, 1.0, 2.0]).low == 1.0


def test_the_best_way_is_kept_with_its_own_samples():
    slow = Way("slow", 1e9, [Sample(2e9, 1e9)] * 6)
    fast = Way("fast", 1e9, [Sample(1e9, 1.5e9), Sample(1e9, 2e9), Sample(1e9, 1.9e9)])
    findings = Findings()
    findings.keep("dram_read", "bytes/s", [slow, fast], l2="clean")
    findings.keep("launch", "s", [slow, fast])

    rate, seconds = findings.ceilings
    assert (rate.how, rate.value.estimate, rate.samples, rate.sm_clock_hz, rate.l2) == ("fast", 1e9, 3, 1.9e9, "clean")
    assert (seconds.how, seconds.value.estimate) == ("fast", 1e-9)


def test_samples_begin_after_one_that_does_not_count():
    calls = []
    samples = samples_of(lambda: calls.append("call"), before=lambda: calls.append("before"))

    assert len(samples) == host._SAMPLES
    assert calls == ["before", "call"] * (host._SAMPLES + 1)


def test_the_rounds_of_several_ways_take_turns():
    order = []
    ways = in_rounds({"a": (1.0, lambda: order.append("a")), "b": (2.0, lambda: order.append("b"))})

    assert [way.how for way in ways] == ["a", "b"] * host._ROUNDS
    assert "".join(order).count("ab") == host._ROUNDS


def test_a_file_that_stays_in_the_page_cache_is_no_measure_of_storage(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(host.RandomFile, "leave_cache", lambda self: False)
    findings = Findings()
    read_storage(findings, tmp_path)

    assert findings.ceilings == []
    assert "keeps a file that it is asked to drop" in findings.missing["storage_read"]
    assert list(tmp_path.iterdir()) == []


def test_every_byte_of_the_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(host, "_READ_BYTES", 1 << 18)
    starts = []
    monkeypatch.setattr(host.os, "preadv", lambda descriptor, buffers, start: starts.append((start, len(buffers[0]))))
    (tmp_path / "file").touch()
    host._read_whole(tmp_path / "file", 3)

    assert sorted(starts) == [(i << 18, 1 << 18) for i in range(4)]


def test_a_surveyor_surveys_and_nothing_else():
    with pytest.raises(SideFailure, match="asked for probe; expected survey"):
        gpu.Surveyor().answer(messages.Probe())


def test_the_topics_of_a_cpu_are_those_that_are_asked_for(tmp_path):
    assert list(HostSurvey(tmp_path).topics) == list(TOPICS["cpu"])


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    return gpu.GpuSurvey(0, tmp_path_factory.mktemp("survey"))


@pytest.mark.gpu
class TestOnAGpu:
    def test_the_topics_are_those_that_are_asked_for(self, survey):
        assert list(survey.topics) == list(TOPICS["cuda"])

    def test_every_launch_of_every_stream_reaches_every_byte(self, survey):
        survey._prove_streams(*survey._buffers(64 << 20))

    @pytest.mark.parametrize("topic", TOPICS["cuda"])
    def test_each_topic_brings_ceilings_or_says_why_not(self, survey, topic):
        findings = Findings()
        survey.topics[topic](findings)

        assert findings.ceilings or findings.missing
        for ceiling in findings.ceilings:
            if ceiling.l2 != "none":  # what depends on the device alone
                assert ceiling.value.half_width_percent < 10, ceiling

    def test_a_further_node_of_a_graph_takes_the_device_less_than_a_launch_takes_the_host(self, survey):
        findings = Findings()
        survey.topics["launch"](findings)
        found = {ceiling.name: ceiling.value for ceiling in findings.ceilings}
        assert 0 < found["graph_node"].low <= found["graph_node"].estimate < found["launch"].estimate

    def test_a_copy_reaches_what_that_of_torch_does(self, survey):
        findings = Findings()
        survey.topics["dram"](findings)
        x, y = (torch.empty(1 << 29, device="cuda").normal_() for _ in range(2))
        samples = survey._samples(gpu.DeviceTimer(x.device, "clean"), lambda: y.copy_(x))
        rates = {(ceiling.name, ceiling.l2): ceiling.value.estimate for ceiling in findings.ceilings}

        assert rates["dram_copy", "clean"] >= Way("copy", 8.0 * x.numel(), samples).interval("bytes/s").low

    def test_reads_reach_what_a_sum_does(self, survey):
        findings = Findings()
        survey.topics["dram"](findings)
        x = torch.empty(1 << 29, device="cuda").normal_()
        samples = survey._samples(gpu.DeviceTimer(x.device, "clean"), x.sum)
        rates = {(ceiling.name, ceiling.l2): ceiling.value.estimate for ceiling in findings.ceilings}

        assert rates["dram_read", "clean"] >= Way("sum", 4.0 * x.numel(), samples).interval("bytes/s").low
