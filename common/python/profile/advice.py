"""What bounds each side and what may help: rules over its shares of this machine's ceilings and, where it was profiled, its counters.

A side is bound by what takes seven tenths of its time or more; if nothing does, it waits: it is bound by latency. On a GPU that is known
once its caches were counted. What the memory's and the arithmetic's parts are is told by ceilings that were measured on this
machine, so the intensity at which one roof gives way to the other, the ridge point, is this device's own. Every sentence names what it
rests on, the value, and where the threshold comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from common.python.machine.roofline import DECLARED_WITHIN, declared_bytes
from common.python.profile import ncu
from common.python.profile.ncu import stall_text, value_text
from common.python.profile.steps import gap_share
from common.python.results import PairResult, PairTiming, SideProfile, StepTrace
from common.python.wording import bytes_text, significant, time_text

MOST = 0.5
"""The part from which on something is most of a whole."""

BOUND = 0.7
"""The part of a side's time from which on something binds it: at 67 % of the L2 a copy took 1.56 times as long as it had to."""

NEAR = 0.9  # the part from which on there is little to gain but by less work


class Bottleneck(StrEnum):
    """What a side is bound by."""

    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    LATENCY = "latency-bound"
    LAUNCH = "launch-bound"
    TRANSFER = "transfer-bound"
    UNKNOWN = "not known"


_MEMORIES = ("dram", "l2")
_LAUNCHES = ("launch", "graph_launch", "graph_node")
_LINKS = ("h2d", "d2h", "peer", "storage", "all_reduce")
_TENSOR_KEYS = frozenset(("tf32", "bf16", "fp16", "fp8", "fp4"))  # whose ceilings only tensor cores reach


def resource_of(key: str) -> Bottleneck:
    """What a side is bound by that is at its ceiling in this key of the work."""
    if key in (*_MEMORIES, "shared"):
        return Bottleneck.MEMORY
    if key in _LAUNCHES:
        return Bottleneck.LAUNCH
    return Bottleneck.TRANSFER if key.startswith(_LINKS) else Bottleneck.COMPUTE


@dataclass(frozen=True)
class Intensity:
    """The arithmetic of a work over its bytes, and the ridge point, both in FLOP/B: below the ridge memory is the roof."""

    arithmetic: str
    memory: str
    value: float
    ridge: float

    @property
    def words(self) -> str:
        """Both, what the ridge comes from, and which roof that makes."""
        place, roof = ("under", self.memory) if self.value < self.ridge else ("over", self.arithmetic)
        return (
            f"{significant(self.value)} FLOP/B, {place} the ridge point of {significant(self.ridge)} FLOP/B that this machine's measured "
            f"ceilings of {self.arithmetic} and {self.memory} make: {roof} is the roof"
        )


@dataclass(frozen=True)
class Facts:
    """What is known of one side at one shape; `profile` is of a step at that shape."""

    side: str
    timing: PairTiming
    profile: SideProfile

    @property
    def time_ns(self) -> float:
        """What a call takes."""
        return self.timing.time_ns[self.side].estimate

    @property
    def counters(self) -> Mapping[str, float]:
        """What ncu counted in a step; nothing where it did not."""
        return self.profile.counters

    @property
    def parts(self) -> dict[str, float]:
        """The part of the side's time that each key of the work would take at its ceiling."""
        return {key: ns / self.time_ns for key, ns in self.timing.ceiling_ns.items()}

    @property
    def intensity(self) -> Intensity | None:
        """The intensity of the work; None where it has no arithmetic, or no bytes, that a ceiling was measured for."""
        ceilings = self.timing.ceiling_ns
        arithmetic = max((key for key in ceilings if resource_of(key) is Bottleneck.COMPUTE), key=lambda key: ceilings[key], default="")
        memory = next((key for key in _MEMORIES if key in ceilings), "")
        if not (arithmetic and memory):
            return None
        value = self.timing.work[arithmetic] / declared_bytes(self.timing.work)
        return Intensity(arithmetic, memory, value, value * ceilings[memory] / ceilings[arithmetic])

    @property
    def gaps_count(self) -> bool:
        """Whether time in which the GPU has nothing to do is in the figure: not where the work is queued ahead."""
        return self.timing.device == "cuda" and not (self.timing.clock == "device" and self.timing.launch_latency_hidden)

    @property
    def caches_counted(self) -> bool:
        """Whether it is known what part of the time its caches are at work; a CPU's are part of what its ceilings are made of."""
        return self.timing.device == "cpu" or {ncu.L1_PERCENT, ncu.L2_PERCENT} <= self.counters.keys()


@dataclass(frozen=True)
class Claim:
    """That something takes this part of a side's time, and in words how that is known."""

    bottleneck: Bottleneck
    part: float
    words: str


@dataclass(frozen=True)
class Diagnosis:
    """What bounds one side at one shape, what that rests on, and what may help, a sentence each."""

    shape: str
    side: str
    bottleneck: Bottleneck
    rests_on: str
    intensity: Intensity | None
    advice: tuple[str, ...]


def diagnoses(row: PairResult) -> Iterator[Diagnosis]:
    """A diagnosis for each side of `row` at each shape of which a ceiling or a counter tells something."""
    for number, (shape, timing) in enumerate(row.timings.items()):
        if timing.mode == "cold_start":  # most of it is set-up
            continue
        for side in timing.time_ns:
            profile = row.sides[side].profile if number == 0 else None  # it is the first shape that is profiled
            facts = Facts(side, timing, profile or SideProfile())
            if claims := list(claims_of(facts)):
                yield _diagnosis(shape, facts, claims)


def _diagnosis(shape: str, facts: Facts, claims: list[Claim]) -> Diagnosis:
    most = max(claims, key=lambda claim: claim.part)
    if most.part >= (MOST if most.bottleneck is Bottleneck.LAUNCH else BOUND):
        bottleneck, rests_on = most.bottleneck, most.words
    elif facts.caches_counted:
        bottleneck, rests_on = Bottleneck.LATENCY, f"nothing takes {_percent(BOUND)} of the time; the most: {most.words}"
    else:
        found = f"nothing that was measured takes {_percent(BOUND)} of the time, and its caches were not counted; the most: {most.words}"
        bottleneck, rests_on = Bottleneck.UNKNOWN, found
    advice = tuple(sentence for of, rule in RULES if bottleneck in of and (sentence := rule(facts)))
    return Diagnosis(shape, facts.side, bottleneck, rests_on, facts.intensity, advice)


def claims_of(facts: Facts) -> Iterator[Claim]:
    """What takes how much of the time: by the work at each ceiling, by what was counted, by the gaps of a trace."""
    for key, part in facts.parts.items():
        yield Claim(resource_of(key), part, f"the work in {key} at this machine's measured ceiling takes {_percent(part)} of the time")
    counters, dram_ns = facts.counters, facts.timing.ceiling_ns.get("dram")
    if dram_ns and counters.get(ncu.TIME) and ncu.DRAM_BYTES in counters:
        counted, took_ns = counters[ncu.DRAM_BYTES], counters[ncu.TIME]
        part = counted * dram_ns / declared_bytes(facts.timing.work) / took_ns
        how = f"{ncu.DRAM_BYTES} of {bytes_text(counted)} in {time_text(took_ns)}"
        yield Claim(Bottleneck.MEMORY, part, f"{how} is {_percent(part)} of this machine's measured ceiling")
    elif ncu.DRAM_PERCENT in counters:
        yield _of_peak(Bottleneck.MEMORY, ncu.DRAM_PERCENT, counters)
    for cache in (ncu.L2_PERCENT, ncu.L1_PERCENT):
        if cache in counters:
            yield _of_peak(Bottleneck.MEMORY, cache, counters)
    if ncu.SM_PERCENT in counters:
        yield _of_peak(Bottleneck.COMPUTE, ncu.SM_PERCENT, counters)
    if facts.profile.step and facts.gaps_count:
        step = facts.profile.step
        yield Claim(
            Bottleneck.LAUNCH, gap_share(step), f"gaps are {_percent(gap_share(step))} of a step's time on the GPU, by {step.source}"
        )


def _of_peak(bottleneck: Bottleneck, counter: str, counters: Mapping[str, float]) -> Claim:
    return Claim(bottleneck, counters[counter] / 100, f"{counter} is {value_text(counter, counters[counter])}, of this device's peak")


def _percent(part: float) -> str:
    return f"{100 * part:.{0 if part >= 0.1 else 1}f} %"


# --- the rules: each is for some bottlenecks, and says a sentence or nothing


def _at_the_ceiling(facts: Facts) -> str:
    key = max(facts.parts, key=lambda name: facts.parts[name], default="")
    if not key or facts.parts[key] < BOUND or (helps := _LESS.get(resource_of(key), "")) == "":
        return ""
    left = f"{max(1.0, 1 / facts.parts[key]):.2f}x"
    waits = facts.parts[key] < NEAR and resource_of(key) in (Bottleneck.MEMORY, Bottleneck.COMPUTE)
    further = (_stalled(facts) or "the rest of the time it waits: --profile deep_dive counts for what") if waits else helps
    return (
        f"{key}: {_percent(facts.parts[key])} of this machine's measured ceiling, so the same work can at most be {left} as fast; {further}"
    )


_LESS = {
    Bottleneck.MEMORY: "move fewer bytes: fuse with what runs before or after, use a narrower type, reuse what is on chip",
    Bottleneck.COMPUTE: "do less arithmetic, or do it in a narrower type, which has a higher ceiling",
    Bottleneck.TRANSFER: "move fewer bytes over the link, or move them under other work",
    Bottleneck.LAUNCH: "launch less often: fuse kernels, or replay a CUDA graph",
}


def _traffic(facts: Facts) -> str:
    declared, counted = declared_bytes(facts.timing.work), facts.counters.get(ncu.DRAM_BYTES, 0.0)
    if not declared or counted <= DECLARED_WITHIN * declared:
        return ""
    return (
        f"{ncu.DRAM_BYTES} is {bytes_text(counted)}, {counted / declared:.2f}x the {bytes_text(declared)} that the workload "
        f"declares, beyond the {DECLARED_WITHIN:g}x that the harness grants: what was read once is read again; tile, fuse or reorder so "
        "that it stays on chip"
    )


def _scattered(facts: Facts) -> str:
    found: list[tuple[float, str]] = []
    for kind, direction in (("st", "stores"), ("ld", "loads")):  # of two alike the stores, for neighbouring loads may find the L1
        sectors, requests = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_{kind}.sum" for what in ("sectors", "requests"))
        if not facts.counters.get(requests) or sectors not in facts.counters:
            continue
        each = facts.counters[sectors] / facts.counters[requests]
        declared = facts.timing.work.get("dram_read" if kind == "ld" else "dram_write", 0.0)
        # An access that starts inside a sector touches one more: only a request that carries mostly what nobody asked for is scattered.
        if each > _WIDEST_SECTORS and declared < MOST * 32 * facts.counters[sectors]:
            sentence = (
                f"{sectors} is {significant(each)} for each of {requests}, over the {_WIDEST_SECTORS} sectors of 32 B that a warp's widest "
                f"access of 16 B a thread fills: give neighbouring threads neighbouring addresses in these {direction}"
            )
            found.append((float(significant(each)), sentence))
    return max(found, key=lambda each: each[0], default=(0.0, ""))[1]


_WIDEST_SECTORS = 32 * 16 // 32


def _conflicts(facts: Facts) -> str:
    lost, all_of_them = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
    if not facts.counters.get(all_of_them) or facts.counters.get(lost, 0.0) < MOST * facts.counters[all_of_them]:
        return ""
    part = _percent(facts.counters[lost] / facts.counters[all_of_them])
    return f"{lost} is {part} of {all_of_them}, so most of shared memory's cycles are conflicts: pad or swizzle the tile"


def _busy_l1(facts: Facts) -> str:
    busy = facts.counters.get(ncu.L1_PERCENT, 0.0)
    if busy < 100 * BOUND:
        return ""
    return f"{ncu.L1_PERCENT} is {significant(busy)} %: ask the L1 and shared memory for less, in fewer and wider accesses"


def _idle_lanes(facts: Facts) -> str:
    lanes = facts.counters.get(_LANES, 32.0)
    if lanes >= BOUND * 32:
        return ""
    return f"{_LANES} is {significant(lanes)} of 32: deal the work so that the threads of a warp go one way"


_LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"


def _idle_tensor_cores(facts: Facts) -> str:
    busy, tensor = facts.counters.get(ncu.SM_PERCENT), facts.counters.get(ncu.TENSOR)
    keys = sorted(_TENSOR_KEYS & facts.timing.ceiling_ns.keys())
    if not keys or busy is None or tensor is None or tensor >= MOST * busy:
        return ""
    return (
        f"{ncu.TENSOR} is {significant(tensor)} % where {ncu.SM_PERCENT} is {significant(busy)} %, and the ceiling of "
        f"{keys[0]} is that of tensor cores: the SM is busy with something else; take it out of the inner loop, or use tensor cores"
    )


_WAVES = "launch__waves_per_multiprocessor"


def _fills(facts: Facts) -> bool:
    """Whether the launch has blocks for every place on the device: if not, neither limits of an SM nor uneven blocks leave it empty."""
    return facts.counters.get(_WAVES, 1.0) >= 1


def _few_blocks(facts: Facts) -> str:
    if _fills(facts):
        return ""
    return (
        f"{_WAVES} is {significant(facts.counters[_WAVES])}, under the 1 that fills this device's SMs: launch more blocks, by "
        "smaller tiles or by splitting the reduction"
    )


def _limited(facts: Facts) -> str:
    most = facts.counters.get("sm__maximum_warps_per_active_cycle_pct", 100.0)
    limits = {name: value for name, value in facts.counters.items() if name.startswith("launch__occupancy_limit_")}
    if most >= 100 or not limits or not _fills(facts):
        return ""
    lowest = min(limits, key=lambda name: limits[name])
    return (
        f"sm__maximum_warps_per_active_cycle_pct is {significant(most)} %, and of this device's limits {lowest} is the lowest, "
        f"{significant(limits[lowest])} blocks an SM: raise it, or give each warp more independent work"
    )


def _uneven(facts: Facts) -> str:
    achieved, most = (facts.counters.get(name) for name in (ncu.OCCUPANCY, "sm__maximum_warps_per_active_cycle_pct"))
    if achieved is None or most is None or achieved >= MOST * most or not _fills(facts):
        return ""
    return (
        f"{ncu.OCCUPANCY} is {significant(achieved)} % of the {significant(most)} % that this launch allows on this device: blocks "
        "end early or late; split the work more evenly"
    )


def _stalled(facts: Facts) -> str:
    reason = stall_text(facts.counters).partition(" ")[0]
    if not reason:
        return ""
    counter = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    helps = _STALLS.get(reason, "see that reason in the profile")
    return f"{counter} is {significant(facts.counters[counter])}, the most of all reasons to stall: {helps}"


_STALLS = {
    "long_scoreboard": "have more loads from memory in flight, by more independent loads a thread, more warps or asynchronous copies",
    "short_scoreboard": "touch shared memory less often or in wider pieces, and spread what special functions are asked",
    "barrier": "synchronize fewer warps at a time, or less often",
    "membar": "fence less often, or for a smaller scope",
    "wait": "give each thread more independent instructions between those that depend on each other",
    "math_pipe_throttle": "mix in instructions of another pipe, or need fewer of this one",
    "lg_throttle": "ask for global memory in fewer, wider requests",
    "mio_throttle": "ask for shared memory and special functions less often, in wider requests",
    "tex_throttle": "ask for textures in fewer requests",
    "branch_resolve": "branch less in the inner loop",
    "no_instruction": "make the inner loop fit the instruction cache: unroll less",
    "not_selected": "there are warps enough; fewer instructions would help, more warps would not",
    "drain": "write less, or earlier, before the warps end",
    "sleeping": "wait on a barrier instead of sleeping",
}


def _gaps(facts: Facts) -> str:
    step: StepTrace | None = facts.profile.step
    if step is None or gap_share(step) < MOST:
        return ""
    return (
        f"a step's {step.launches} launches leave gaps of {_percent(gap_share(step))} on the GPU by {step.source}, which itself slows the "
        "host: replay a CUDA graph, or make fewer and larger kernels"
    )


def _apart(facts: Facts) -> str:
    step = facts.profile.step
    if step is None or step.overlap_share is None or step.overlap_share >= MOST:
        return ""
    return (
        f"copies and kernels of a step ran side by side for {_percent(step.overlap_share)} of the shorter of them, by {step.source}, less "
        "than half of what they could: put copies on a stream of their own, in pieces"
    )


def _uncounted(facts: Facts) -> str:
    if stall_text(facts.counters) or facts.timing.device == "cpu":
        return ""
    return "no counter was read that says what it waits for: run it with --profile deep_dive"


_ANY = frozenset(Bottleneck)
_WAITING = frozenset((Bottleneck.LATENCY, Bottleneck.UNKNOWN))

RULES: tuple[tuple[frozenset[Bottleneck], Callable[[Facts], str]], ...] = (
    (_ANY - _WAITING, _at_the_ceiling),
    (_WAITING | {Bottleneck.MEMORY}, _scattered),
    (_ANY, _traffic),
    (_ANY, _conflicts),
    (frozenset((Bottleneck.COMPUTE,)), _idle_lanes),
    (frozenset((Bottleneck.MEMORY,)), _busy_l1),
    (frozenset((Bottleneck.COMPUTE,)), _idle_tensor_cores),
    (_WAITING, _few_blocks),
    (_WAITING, _limited),
    (_WAITING, _uneven),
    (_WAITING, _stalled),
    (frozenset((Bottleneck.LAUNCH,)), _gaps),
    (frozenset((Bottleneck.TRANSFER,)), _apart),
    (_WAITING, _uncounted),
)
