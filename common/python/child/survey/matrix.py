"""How fast a GPU multiplies matrices at most: torch's products by format, and mma.sync on operands that stay in registers.

mma.sync is the tensor cores' instruction since Ampere. Where torch's libraries use wgmma or tcgen05, which may be faster, what a kernel of
mma.sync can reach is a ceiling of its own. Source of its fragments: PTX ISA, matrix fragments for mma.m16n8k16.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch

from common.python.child.device.driver import DriverError, Kernels
from common.python.child.device.helpers import device_helpers, sm_clock_hz
from common.python.child.device.sampler import DeviceTimer, Sample
from common.python.child.survey.host import Call, Findings, Way, product
from common.python.machine.ceilings import Ceiling

MMA_SYNC = "bf16_mma_sync"

# The capability that a format needs.
_FORMATS = {"fp64": (0, 0), "fp32": (0, 0), "tf32": (8, 0), "bf16": (8, 0), "fp16": (7, 0), "fp8": (8, 9), "fp4": (10, 0)}
_LEAST = _FORMATS | {MMA_SYNC: (8, 0)}
_SIZES, _LARGE_SIZES = (4096, 8192), (4096, 8192, 16384)
_SLOW_FORMATS = ("fp64", "fp32")
_FP4_BLOCK = 16  # elements that share a scale

_MMA_ROUNDS = 8000
_MMA_FLOP = 8 * 2 * 16 * 8 * 16  # of a warp in a round: 8 instructions
_MMA_LAUNCHES = ((256, 1), (256, 2))  # threads a block, blocks an SM: 8 chains a warp, so 16 or 32 for each of an SM's four tensor cores
_MMA_WITHIN = 0.01  # of the totals' root mean square: each of the rounds may leave out what is below a sum's 23rd bit

_PAUSE_S = 0.02  # between samples of a product: the power that one drew is not held against the next
_SUSTAINED_S, _SUSTAINED_PARTS = 1.1, 11


@dataclass(frozen=True)
class MatrixSurvey:
    """The topic of matrix rates on one GPU; `samples`, given a timer and a call, has the call's times after a pause of `pause_s` each."""

    device: torch.device
    sms: int
    capability: tuple[int, int]
    kernels: Kernels
    samples: Callable[..., list[Sample]]

    def measure(self, findings: Findings) -> None:
        """Bring each format's rate and that of mma.sync, in flop/s, in bursts and sustained; say of each that is missing why."""
        timer = DeviceTimer(self.device, "clean")
        for name, least in _LEAST.items():
            if self.capability < least:
                needed, found = (".".join(map(str, capability)) for capability in (least, self.capability))
                findings.missing[name] = f"needs compute capability {needed}; this GPU has {found}"
                continue
            try:
                if name == MMA_SYNC:
                    self._mma_sync(findings, timer)
                else:
                    self._products(findings, timer, name)
            except (RuntimeError, ValueError, DriverError) as error:  # a format that torch does not multiply here, or too little memory
                findings.missing[name] = f"torch {torch.__version__}: {' '.join(str(error).split())[:200]}"

    def _products(self, findings: Findings, timer: DeviceTimer, name: str) -> None:
        sizes = _SIZES if name in _SLOW_FORMATS else _LARGE_SIZES
        self._keep(findings, timer, name, {f"{n} x {n} x {n}": (2.0 * n**3, partial(self._product, name, n)) for n in sizes})

    def _mma_sync(self, findings: Findings, timer: DeviceTimer) -> None:
        makers: dict[str, tuple[float, Callable[[], Call]]] = {}
        for threads, resident in _MMA_LAUNCHES:
            loop = MmaLoop.made(self.device, threads, resident * self.sms)
            how = f"{threads} threads, {resident} blocks an SM"
            loop.call(self.kernels)()
            if sentence := loop.wrong():
                findings.missing[MMA_SYNC] = f"ceilings.ptx: mma_sync, launched with {how}: {sentence}"
                return
            makers[how] = (loop.amount, partial(loop.call, self.kernels))
        self._keep(findings, timer, MMA_SYNC, makers)
        bursts = {ceiling.name: ceiling for ceiling in findings.ceilings if ceiling.mode == "burst"}
        findings.notes += notes_on(bursts[MMA_SYNC], bursts.get("bf16"), self.sms)

    def _keep(self, findings: Findings, timer: DeviceTimer, name: str, makers: Mapping[str, tuple[float, Callable[[], Call]]]) -> None:
        """Keep the best of several ways, each an amount of flop and what makes its call, and what that way sustains."""
        ways = [Way(how, amount, self.samples(timer, make(), pause_s=_PAUSE_S)) for how, (amount, make) in makers.items()]
        findings.keep(name, "flop/s", ways, l2="clean")
        best = max(ways, key=lambda way: way.interval("flop/s").estimate)
        _, make = makers[best.how]
        back_to_back = self._sustained(make(), statistics.median(sample.ns for sample in best.samples))
        findings.keep(name, "flop/s", [Way(best.how, best.amount, back_to_back)], mode="sustained", l2="hot")

    def _product(self, name: str, size: int) -> Call:
        if name == "fp8":
            a, b = (torch.randn(size, size, device=self.device).to(torch.float8_e4m3fn) for _ in range(2))
            one = torch.ones((), device=self.device)
            return partial(torch._scaled_mm, a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
        if name == "fp4":
            packed = (torch.randint(256, (size, size // 2), dtype=torch.uint8, device=self.device) for _ in range(2))
            c, d = (pairs.view(torch.float4_e2m1fn_x2) for pairs in packed)
            ones = torch.ones(size * size // _FP4_BLOCK, device=self.device).to(torch.float8_e4m3fn)
            return partial(torch._scaled_mm, c, d.t(), scale_a=ones, scale_b=ones, out_dtype=torch.bfloat16)
        torch.backends.cuda.matmul.fp32_precision = "tf32" if name == "tf32" else "ieee"
        return product(name, size, self.device)

    def _sustained(self, call: Call, call_ns: float) -> list[Sample]:
        """Times of a call in the parts of a second and more of calls back to back."""
        calls = math.ceil(_SUSTAINED_S * 1e9 / _SUSTAINED_PARTS / call_ns)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(_SUSTAINED_PARTS + 1)]
        stamps = [torch.zeros(self.sms, 2, dtype=torch.int64, device=self.device) for _ in range(2)]
        device_helpers().stamp(stamps[0])
        events[0].record()
        for event in events[1:]:
            for _ in range(calls):
                call()
            event.record()
        device_helpers().stamp(stamps[1])
        torch.cuda.synchronize()
        clock = sm_clock_hz(*(stamp.cpu() for stamp in stamps))
        return [Sample(begin.elapsed_time(end) * 1e6 / calls, clock) for begin, end in pairwise(events)]


@dataclass(frozen=True)
class MmaLoop:
    """A launch of mma_sync: `source` holds the 32 random bfloat16 of each thread of a block, `target` a float32 for each thread of all."""

    source: torch.Tensor
    target: torch.Tensor
    rounds: int

    @classmethod
    def made(cls, device: torch.device, threads: int, blocks: int) -> MmaLoop:
        """On `blocks` blocks of `threads` threads, whole warps."""
        source = torch.randn(threads, 32, device=device).to(torch.bfloat16)
        return cls(source, torch.zeros(blocks, threads, device=device), _MMA_ROUNDS)

    @property
    def amount(self) -> float:
        """Its flop."""
        return float(self.target.numel() // 32 * self.rounds * _MMA_FLOP)

    def call(self, kernels: Kernels) -> Call:
        """The launch."""
        addresses = (self.source.data_ptr(), self.target.data_ptr())
        return partial(kernels.launch, "mma_sync", *self.target.shape, *addresses, self.rounds)

    def wrong(self) -> str:
        """What is wrong with the totals in `target`, in a sentence; "" if nothing is."""
        found, expected = self.target.double().view(len(self.target), -1, 32).sum(2), self._warp_totals()
        most = _MMA_WITHIN * float(expected.square().mean().sqrt())
        away = float((found - expected).abs().max())
        return "" if away <= most else f"found a warp's total {away:.4g} off; expected at most {most:.4g}"

    def _warp_totals(self) -> torch.Tensor:
        """What the totals of each warp of a block add up to, a float64 a warp: a product's entries add up to the products, over k, of the
        total of a's column and that of b's row.
        """
        # Half i of a word of thread 4 g + t is of k = 8 h + 2 t + i; words of a go by fragment, h and row g or g + 8, of b by fragment, h.
        words = self.source.double().view(-1, 8, 4, 16, 2)  # warp, g, t, word, i
        a = words[:, :, :, :8].reshape(-1, 8, 4, 2, 2, 2, 2).sum((1, 3, 5))
        b = words[:, :, :, 8:].reshape(-1, 8, 4, 4, 2, 2).sum((1, 3))
        return self.rounds * (a * b).sum((1, 2, 3))


def notes_on(mma_sync: Ceiling, bf16: Ceiling | None, sms: int) -> list[str]:
    """What a cycle of an SM gives by mma.sync, and the share of the ceiling of products in the same format, where they are known."""
    rate, found = mma_sync.value.estimate, []
    if mma_sync.sm_clock_hz:
        found.append(f"{rate / (2 * sms * mma_sync.sm_clock_hz):.0f} FMAs a cycle on each of {sms} SMs")
    if bf16:
        found.append(f"{100 * rate / bf16.value.estimate:.0f} % of the ceiling of bf16")
    return [f"mma.sync reaches {', '.join(found)}"] if found else []
