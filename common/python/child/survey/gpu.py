"""What a GPU can do at most, measured as sides are timed: held stream, events, the L2 in a stated state, clocks stamped.

Memory is driven by the kernels of ceilings.ptx, matrix products as matrix_ceilings.py does; of every ceiling several variants are tried
and the best kept.
Source of the launches: CUDA Driver API (cuLaunchKernel, stream capture, cuGraphLaunch).
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from common.python.child.device import driver
from common.python.child.device.driver import Kernels, current_stream
from common.python.child.device.sampler import DeviceTimer, L2State, Sample
from common.python.child.survey.collective import all_reduce
from common.python.child.survey.host import Call, Findings, HostSurvey, Way, read_storage, samples_of
from common.python.child.survey.matrix import MatrixSurvey
from common.python.errors import SideFailure, Status
from common.python.machine.ceilings import ALL_REDUCE
from common.python.processes import messages
from common.python.processes.messages import Answer, AnyRequest
from common.python.wording import bytes_text

_PTX = Path(__file__).with_suffix(".ptx")
_STREAMS = tuple(f"{form}_{what}" for form in ("stream", "vector") for what in ("read", "write", "copy", "triad"))
_KERNELS = (*_STREAMS, "shared_read", "multiply_add", "mma_sync", "nothing")

_SAMPLES = 12
_HOLD_NS = 2_000_000_000
_FLUSHED: tuple[L2State, ...] = ("clean", "dirty")

_STREAM_BYTES = 2 << 30  # a buffer: far more than any L2
_MOST_MEMORY_SHARE = 0.1
_L2_TRAFFIC_BYTES = 4 << 30
_MOST_ZERO_WORDS = 32  # that stream_write leaves in 4 GiB: each of its four sequences hits zero once, and a word is stored 8 times

_ON_CHIP = {"shared": ("shared_read", 1000, 128), "fp32_fma": ("multiply_add", 8000, 32)}  # kernel, rounds, bytes or flop a round
_ON_CHIP_LAUNCHES = ((1024, 2), (512, 4), (256, 8))

_COPY_BYTES = 256 << 20
_CACHED_COPY_BYTES = (16 << 20, 64 << 20)
_PEER_BYTES, _PEER_COPIES = 1 << 30, 4
_LAUNCHES_IN_A_ROW = 256  # fewer than the driver queues before the host has to wait
_LAUNCH_ROUNDS = 5
_CHAINS = (64, 512)  # kernels in the two graphs whose difference is the time per node
_THREAD_LOCAL_CAPTURE = 1


class Surveyor:
    """Answers Survey requests."""

    def answer(self, request: AnyRequest) -> Answer:
        """Measure one topic of one device. Raises SideFailure."""
        if not isinstance(request, messages.Survey):
            raise SideFailure(Status.CRASHED, f"a surveyor was asked for {request.kind}; expected survey")
        if request.topic == ALL_REDUCE:
            return messages.Surveyed(nonce=request.nonce, cache_bytes=0, ceilings=all_reduce(request).ceilings, missing={}, notes=[])
        folder = Path(request.folder)
        survey = GpuSurvey(request.index, folder) if request.device == "cuda" else HostSurvey(folder)
        findings = Findings()
        survey.topics[request.topic](findings)
        return messages.Surveyed(
            nonce=request.nonce,
            cache_bytes=survey.cache_bytes,
            ceilings=findings.ceilings,
            missing=findings.missing,
            notes=findings.notes,
        )

    def close(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True)
class _Launch:
    """How a stream is driven: by `threads` a block and `resident` blocks an SM that stay until all is done, or with 0 by a tile a block.

    With `vector` a thread takes no more than 16 bytes of each buffer: on an H200 the fastest copy, write and triad (2026-11-22).
    """

    threads: int
    resident: int = 0
    vector: bool = False

    @property
    def how(self) -> str:
        """In words."""
        stay = f"{self.resident} blocks an SM" if self.resident else "a tile a block"
        return f"{self.threads} threads, {'16 bytes a thread' if self.vector else stay}"


_LAUNCHES = (
    *(_Launch(256), _Launch(512), _Launch(256, 4), _Launch(512, 2), _Launch(128, 8)),
    *(_Launch(threads, vector=True) for threads in (256, 512, 1024)),
)


@dataclass(frozen=True)
class _Stream:
    """A stream kernel that passes `passes` times over the first `size` bytes, a power of two, of each of its buffers."""

    kernel: str
    buffers: tuple[torch.Tensor, ...]
    size: int
    passes: int = 1

    @property
    def amount(self) -> float:
        """Bytes read and written."""
        return float(len(self.buffers) * self.size * self.passes)

    def call(self, kernels: Kernels, sms: int, launch: _Launch) -> Call:
        """The launch on a GPU of `sms` SMs."""
        addresses = [buffer.data_ptr() for buffer in self.buffers]
        if launch.vector:
            tiles = self.size // (16 * launch.threads)
            name = self.kernel.replace("stream", "vector")
            return partial(kernels.launch, name, tiles * self.passes, launch.threads, *addresses, tiles - 1)
        tiles = self.size // (launch.threads * (64 if self.kernel == "stream_triad" else 128))
        blocks = min(tiles * self.passes, launch.resident * sms) if launch.resident else tiles * self.passes
        return partial(kernels.launch, self.kernel, blocks, launch.threads, *addresses, tiles - 1, tiles * self.passes)


class GpuSurvey:
    """The topics of one GPU; `index` is CUDA's."""

    def __init__(self, index: int, folder: Path) -> None:
        torch.cuda.set_device(index)
        torch.cuda.set_stream(torch.cuda.Stream())
        self._index = index
        self._device = torch.device("cuda", index)
        torch.zeros(1, device=self._device)  # makes the context that the kernels are loaded into
        properties = torch.cuda.get_device_properties(self._device)
        self._sms = properties.multi_processor_count
        self._kernels = Kernels(_PTX, _KERNELS)
        matrix = MatrixSurvey(self._device, self._sms, (properties.major, properties.minor), self._kernels, self._samples)
        self.cache_bytes: int = properties.L2_cache_size
        self.topics: dict[str, Callable[[Findings], None]] = {
            "dram": self._dram,
            "l2": self._l2,
            "on_chip": self._on_chip,
            "matrix": matrix.measure,
            "transfer": self._transfer,
            "peer": self._peer,
            "launch": self._launch,
            "storage": lambda findings: read_storage(findings, folder),
        }

    def _dram(self, findings: Findings) -> None:
        free, _ = torch.cuda.mem_get_info(self._device)
        size = min(_STREAM_BYTES, 1 << int(math.log2(_MOST_MEMORY_SHARE * free)))
        buffers = self._buffers(size)
        self._prove_streams(*buffers)
        for state in _FLUSHED:
            timer = DeviceTimer(self._device, state)
            for kernel, used in _streams(*buffers).items():
                ways = self._stream_ways(timer, _Stream(kernel, used, size))
                if kernel == "stream_copy":
                    ways.append(self._memcpy(timer, *used))
                findings.keep(kernel.replace("stream", "dram"), "bytes/s", ways, l2=state)
        # A discard is a hint: where it is not taken, both states are dirty.
        small = _Stream("stream_copy", (buffers[0], buffers[2]), 1 << math.ceil(math.log2(self.cache_bytes)))
        call = small.call(self._kernels, self._sms, _LAUNCHES[0])
        clean, dirty = (statistics.median(s.ns for s in self._samples(DeviceTimer(self._device, state), call)) for state in _FLUSHED)
        findings.notes.append(
            f"a copy of {bytes_text(small.size)} takes {clean / 1e3:.1f} µs after a flush whose lines were discarded, "
            f"{dirty / 1e3:.1f} µs after one that left them dirty"
        )

    def _l2(self, findings: Findings) -> None:
        timer = DeviceTimer(self._device, "hot")
        most = 1 << int(math.log2(self.cache_bytes / 2))  # of all buffers together
        streams = _streams(*self._buffers(most))
        del streams["stream_triad"]
        for kernel, used in streams.items():
            sizes = [most // len(used), most // len(used) // 2]
            ways = [way for size in sizes for way in self._stream_ways(timer, _Stream(kernel, used, size, _L2_TRAFFIC_BYTES // size))]
            findings.keep(kernel.replace("stream", "l2"), "bytes/s", ways, l2="hot")

    def _on_chip(self, findings: Findings) -> None:
        timer = DeviceTimer(self._device, "hot")
        source = torch.empty(4096, device=self._device).normal_()  # 16 KiB, 16 bytes for each thread of the largest block
        for name, (kernel, rounds, amount) in _ON_CHIP.items():
            ways = []
            for threads, resident in _ON_CHIP_LAUNCHES:
                blocks = resident * self._sms
                call = partial(self._kernels.launch, kernel, blocks, threads, source.data_ptr(), rounds)
                samples = self._samples(timer, call)
                ways.append(Way(f"{threads} threads, {resident} blocks an SM", float(blocks * threads * rounds * amount), samples))
            findings.keep(name, "bytes/s" if name == "shared" else "flop/s", ways, l2="hot")

    def _transfer(self, findings: Findings) -> None:
        """Pinned memory is read by the GPU; pageable memory by a CPU core first, faster where its caches hold it."""
        ways: dict[str, list[Way]] = {}
        for size in (_COPY_BYTES, *_CACHED_COPY_BYTES):
            here = torch.empty(size, dtype=torch.uint8, device=self._device).random_(0, 256)
            pageable = here.cpu()
            hosts = {"_pageable": pageable} | ({"": pageable.pin_memory()} if size == _COPY_BYTES else {})
            for suffix, host in hosts.items():
                ways.setdefault("h2d" + suffix, []).append(self._moved(size, partial(here.copy_, host, non_blocking=True)))
                ways.setdefault("d2h" + suffix, []).append(self._moved(size, partial(host.copy_, here, non_blocking=True)))
        for name, found in ways.items():
            findings.keep(name, "bytes/s", found)

    def _moved(self, size: int, call: Call) -> Way:
        # Not held: the driver copies pageable memory before it returns.
        return Way(bytes_text(size), size, self._samples(DeviceTimer(self._device, "hot"), call, hold_ns=0))

    def _peer(self, findings: Findings) -> None:
        names = ("peer_out", "peer_in", "peer_both")
        count = torch.cuda.device_count()
        if count < 2:
            findings.missing |= dict.fromkeys((*names, ALL_REDUCE), "needs 2 GPUs; this machine has 1")
            return
        other = torch.device("cuda", (self._index + 1) % count)
        if not torch.cuda.can_device_access_peer(self._device, other):
            findings.missing |= dict.fromkeys(names, f"{self._device} cannot access the memory of {other}")
            return
        mine, back = (torch.empty(_PEER_BYTES, dtype=torch.uint8, device=self._device).random_(0, 256) for _ in range(2))
        theirs, there = (torch.empty(_PEER_BYTES, dtype=torch.uint8, device=other).random_(0, 256) for _ in range(2))
        out, into = _PeerCopy(there, mine), _PeerCopy(back, theirs)
        for name, copies in zip(names, ([out], [into], [out, into]), strict=True):
            samples = samples_of(partial(_copy_all, copies), before=_wait_for_all)
            way = Way(f"{bytes_text(_PEER_BYTES)}, {other}", float(len(copies) * _PEER_COPIES * _PEER_BYTES), samples)
            findings.keep(name, "bytes/s", [way])

    def _launch(self, findings: Findings) -> None:
        launch = [*self._kernels.launch_arguments("nothing", 1, 32), None, None]
        calls = {
            "launch": ("cuLaunchKernel", launch, "a kernel that does nothing"),
            "graph_launch": ("cuGraphLaunch", [self._graph(1), current_stream()], "a graph of one kernel that does nothing"),
        }
        for name, (function, arguments, what) in calls.items():
            driver.call(function, *arguments)
            # What Python takes for such a call is not the driver's: labs does nothing with as many arguments.
            empty = partial(_in_a_row, partial(ctypes.CDLL(None).labs, *arguments))
            python_ns = min(sample.ns for sample in samples_of(empty))
            in_a_row = partial(_in_a_row, partial(driver.library()[function], *arguments))
            rounds = [samples_of(in_a_row, before=torch.cuda.synchronize) for _ in range(_LAUNCH_ROUNDS)]
            ways = [
                Way(f"the host's time to launch {what}", float(_LAUNCHES_IN_A_ROW), [Sample(sample.ns - python_ns) for sample in samples])
                for samples in rounds
            ]
            torch.cuda.synchronize()
            findings.keep(name, "s", ways)
        findings.keep("graph_node", "s", [self._graph_node()], l2="hot")

    def _graph_node(self) -> Way:
        """The device's time per node of a chain: what the longer of two graphs takes beyond the shorter, whose start is the same."""
        timer = DeviceTimer(self._device, "hot")
        short, long = (
            self._samples(timer, partial(driver.call, "cuGraphLaunch", self._graph(nodes), current_stream())) for nodes in _CHAINS
        )
        beyond = [Sample(after.ns - before.ns, after.sm_clock_hz) for before, after in zip(short, long, strict=False)]
        nodes = _CHAINS[1] - _CHAINS[0]
        return Way(f"the device's time per kernel that does nothing, {nodes} of them behind {_CHAINS[0]} in a graph", float(nodes), beyond)

    def _graph(self, nodes: int) -> ctypes.c_void_p:
        """A graph that is a chain of kernels that do nothing."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuStreamBeginCapture_v2", current_stream(), ctypes.c_int(_THREAD_LOCAL_CAPTURE))
        for _ in range(nodes):
            self._kernels.launch("nothing", 1, 32)
        driver.call("cuStreamEndCapture", current_stream(), ctypes.byref(graph))
        driver.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        return executable

    def _samples(self, timer: DeviceTimer, call: Call, *, pause_s: float = 0.0, hold_ns: int = _HOLD_NS) -> list[Sample]:
        """Times of `call` after two that do not count. Raises SideFailure if the hold ran out each time."""
        call()
        call()
        samples = []
        for _ in range(_SAMPLES):
            time.sleep(pause_s)
            timer.chill()
            sample, _ = timer.time([call], hold_ns)
            if not sample.void:
                samples.append(sample)
        if not samples:
            raise SideFailure(Status.CRASHED, f"the stream's hold of {hold_ns / 1e9:g} s ran out in every sample; expected it to last")
        return samples

    def _stream_ways(self, timer: DeviceTimer, stream: _Stream) -> list[Way]:
        ways = []
        for launch in _LAUNCHES:
            samples = self._samples(timer, stream.call(self._kernels, self._sms, launch))
            ways.append(Way(f"{bytes_text(stream.size)} a buffer, {launch.how}", stream.amount, samples))
        return ways

    def _memcpy(self, timer: DeviceTimer, source: torch.Tensor, target: torch.Tensor) -> Way:
        """A copy by the driver, which torch leaves it to."""
        samples = self._samples(timer, partial(target.copy_, source, non_blocking=True))
        return Way(f"{bytes_text(source.nbytes)} a buffer, cudaMemcpyAsync", 2.0 * source.nbytes, samples)

    def _buffers(self, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        a, b, c = (torch.empty(size // 4, device=self._device).normal_() for _ in range(3))
        return a, b, c

    def _prove_streams(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        """See that the kernels reach every byte, whatever the launch. Raises SideFailure."""
        size = a.numel() * 4
        triad = torch.add(a, b, alpha=3.0)
        proofs: dict[str, Callable[[], bool]] = {
            "stream_copy": lambda: torch.equal(c, a),
            "stream_triad": lambda: torch.allclose(c, triad, rtol=1e-5, atol=1e-5),
            "stream_write": lambda: int((c.view(torch.int32) == 0).sum()) <= _MOST_ZERO_WORDS,
        }
        for launch in _LAUNCHES:
            for kernel, holds in proofs.items():
                c.zero_()
                _Stream(kernel, _streams(a, b, c)[kernel], size).call(self._kernels, self._sms, launch)()
                if not holds():
                    reason = f"ceilings.ptx: {kernel}, launched with {launch.how}, missed some of {size} bytes; expected it to reach all"
                    raise SideFailure(Status.WRONG_RESULT, reason)


class _PeerCopy:
    """A copy between GPUs, on streams of its own, so that two of them can go on at once."""

    def __init__(self, target: torch.Tensor, source: torch.Tensor) -> None:
        self._target, self._source = target, source
        self._streams = [torch.cuda.Stream(tensor.device) for tensor in (target, source)]

    def queue(self) -> None:
        """Queue the copy behind those before it."""
        with torch.cuda.stream(self._streams[0]), torch.cuda.stream(self._streams[1]):
            self._target.copy_(self._source, non_blocking=True)


def _copy_all(copies: Sequence[_PeerCopy]) -> None:
    for _ in range(_PEER_COPIES):
        for copy in copies:
            copy.queue()
    _wait_for_all()


def _wait_for_all() -> None:
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def _in_a_row(call: Call) -> None:
    for _ in range(_LAUNCHES_IN_A_ROW):
        call()


def _streams(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> dict[str, tuple[torch.Tensor, ...]]:
    """The buffers of each stream kernel; only c is ever written."""
    return {"stream_read": (a,), "stream_write": (c,), "stream_copy": (a, c), "stream_triad": (a, b, c)}
