"""Whether what a side claims is so: what is known of both sides, claim by claim, becomes proven, failed or unchecked.

Knowledge is partial. Without a GPU nobody has seen which kernels of a library a step launches, and PyTorch's own kernels come
without machine code. So an amount is an interval, a comparison has three answers, and "unknown" is unchecked, never proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from common.python.build.sass import Kernel, base_name, demangled
from common.python.pairs.claims import COUNTED, IN_CODE, Claim, Measure, Technique, techniques
from common.python.processes.messages import Launch, Span
from common.python.profile.steps import hidden_share, overlap
from common.python.results import BASELINE, Proof

_SINGULAR = {"launches": "launch", "kernels": "kernel", "graph_nodes": "graph node", "blocks": "block"}
NOWHERE = ""  # the architecture of a side of which nothing could be learnt


@dataclass(frozen=True)
class Seen:
    """What is known of one side on one architecture.

    kernels    machine code: of all kernels in the side's library, or of those that were compiled for a step
    launches   what a step was seen to launch
    spans      all that it was seen to do on the GPU
    hidden     why there may be launches that were not seen, in a sentence; empty where all were
    no_code    why there may be kernels whose machine code is not in `kernels`; empty where it all is
    counters   a profiler's counters, summed over a step; None where nobody counted them for the claims
    uncounted  why, in a sentence
    calls      how often the host called each function of CUDA in a step; none where nobody watched one
    """

    kernels: tuple[Kernel, ...] = ()
    launches: tuple[Launch, ...] = ()
    spans: tuple[Span, ...] = ()
    hidden: str = ""
    no_code: str = ""
    counters: Mapping[str, float] | None = None
    uncounted: str = "counters are read by a profiler, and none ran"
    calls: Mapping[str, int] = field(default_factory=dict)

    def tells(self, measure: Measure) -> bool:
        """Whether this is what `measure` is about: machine code wherever it is, a run only where the side ran."""
        if measure.technique is not None or measure.kind in IN_CODE:
            return True
        if measure.kind == "counter":
            return self.counters is not None
        if measure.kind in COUNTED and not measure.kernel:  # of all that a step launches
            return not self.hidden
        return bool({"calls": self.calls, "overlap": self.spans}.get(measure.kind, self.launches) or not self.hidden)

    @cached_property
    def launched_kernels(self) -> tuple[Kernel, ...]:
        """Those of `kernels` that a step launches; all of them if nobody saw what it launches."""
        if self.hidden and not self.launches:
            return self.kernels
        registers: dict[str, set[int | None]] = {}
        for launch in self.launches:
            registers.setdefault(demangled(launch.kernel), set()).add(launch.registers)
        named = [kernel for kernel in self.kernels if kernel.name in registers]
        # An autotuner compiles a kernel many times under one name: the one that ran has the launch's registers.
        same = {kernel.name for kernel in named if kernel.registers in registers[kernel.name]}
        return tuple(kernel for kernel in named if kernel.name not in same or kernel.registers in registers[kernel.name])


Evidence = Mapping[str, Mapping[str, Seen]]
"""By side, then by architecture (`90a`)."""

_ELDER = {"103a": "100a"}
"""Of an architecture the one that techniques.tsv knows, whose instructions it has."""


def nothing(why: str) -> dict[str, Seen]:
    """The evidence of a side of which nothing could be learnt."""
    return {NOWHERE: Seen(hidden=why, no_code=why)}


@dataclass(frozen=True)
class Amount:
    """At least `low`, at most `high`; `told` says in words what was found, or why that is not all."""

    low: float
    high: float
    told: str


def prove(claim: Claim, side: str, evidence: Evidence) -> Proof:
    """What the evidence says of a claim that `side` makes."""
    technique = claim.measure.technique
    wanted = technique.architectures if technique else ()
    mine = {name: seen for name, seen in evidence[side].items() if not wanted or _ELDER.get(name, name) in (*wanted, NOWHERE)}
    if not mine:
        found = f"exists on {_names(wanted)}; the side was built for {_names(evidence[side])}"
        return Proof(side=side, claim=claim.text, state="unchecked", detail=found)
    mine = {name: seen for name, seen in mine.items() if seen.tells(claim.measure)} or mine
    answers = {name: _on(claim, seen, _baseline(evidence, name)) for name, seen in mine.items()}
    states = {state for state, _ in answers.values()}
    state = next(state for state in (False, None, True) if state in states)
    told = {name: told for name, (one, told) in answers.items() if one is state}
    by_sentence = {sentence: [name for name in told if told[name] == sentence] for sentence in told.values()}
    detail = "; ".join(sentence if state is None else f"{sentence} ({_names(names)})" for sentence, names in by_sentence.items())
    word = {True: "proven", False: "failed", None: "unchecked"}[state]
    return Proof.model_validate({"side": side, "claim": claim.text, "state": word, "detail": detail})


def _baseline(evidence: Evidence, architecture: str) -> Sequence[Seen]:
    """What there is to compare with: the baseline on the same architecture, or its elder, or on all that it was built for."""
    baseline = evidence.get(BASELINE, nothing("the baseline is not part of this row"))
    near = next((name for name in (architecture, _ELDER.get(architecture)) if name in baseline), None)
    return [baseline[near]] if near else list(baseline.values())


def _on(claim: Claim, mine: Seen, baselines: Sequence[Seen]) -> tuple[bool | None, str]:
    """Whether the claim holds on one architecture, and what was found there."""
    amount = _amount(claim.measure, mine, own=True)
    if not claim.separates:
        return _compare(amount, claim.relation, claim.bound), amount.told
    theirs = [_amount(claim.measure, baseline, own=False) for baseline in baselines]
    baseline = ", ".join(dict.fromkeys(each.told for each in theirs))
    told = amount.told if amount.told == baseline else f"{amount.told}; baseline: {baseline}"
    if claim.relative:
        bounds = [replace(each, low=claim.bound * each.low, high=claim.bound * each.high) for each in theirs]
        return _all(_compare(amount, claim.relation, bound) for bound in bounds), told
    holds = _compare(amount, claim.relation, claim.bound)
    if holds is False:
        return False, amount.told
    held = [_compare(each, claim.relation, claim.bound) for each in theirs]
    if True in held:
        return False, f"the same in the baseline: {baseline}"
    return _all([holds, *(None if each is None else True for each in held)]), told


def _all(answers: Iterable[bool | None]) -> bool | None:
    found = set(answers)
    return False if False in found else None if None in found else True


def _compare(amount: Amount, relation: str, bound: float | Amount) -> bool | None:
    """Whether `amount` stands in `relation` to `bound`, wherever in its interval each lies; None if that decides it."""
    other = bound if isinstance(bound, Amount) else Amount(bound, bound, "")
    if relation in (">", ">="):
        return _compare(other, {">": "<", ">=": "<="}[relation], amount)
    if relation == "==":
        apart = amount.low > other.high or amount.high < other.low
        return False if apart else True if amount.low == amount.high == other.low == other.high else None
    if relation == "<":
        return True if amount.high < other.low else False if amount.low >= other.high else None
    return True if amount.high <= other.low else False if amount.low > other.high else None


def _amount(measure: Measure, seen: Seen, *, own: bool) -> Amount:
    """How much of `measure` there is; `own` where the side itself makes the claim, in machine code that it brings."""
    if measure.technique is not None:
        return _instructions(measure.technique, measure.kernel, seen, own=own)
    if measure.kind in IN_CODE:
        return _in_code(measure, seen)
    if measure.kind == "counter":
        name = measure.names[0]
        if seen.counters is None:
            return Amount(0, math.inf, seen.uncounted)
        if name not in seen.counters:
            return Amount(0, math.inf, f"the profiler gave no {name}")
        value = seen.counters[name]
        return Amount(value, value, f"{value:.6g} {name}")
    if measure.kind == "overlap":
        return _overlap(measure.names, seen)
    if measure.kind == "calls":
        return _called(measure.names[0], seen)
    return _launched(measure, seen)


def _instructions(technique: Technique, part: str, seen: Seen, *, own: bool) -> Amount:
    kernels = [kernel for kernel in seen.launched_kernels if part in kernel.name]
    counts = [(kernel, _count(technique, kernel)) for kernel in kernels if _count(technique, kernel)]
    low = sum(count for kernel, count in counts if _is_evidence(technique, kernel))
    places = ", ".join(f"{count} instruction{'' if count == 1 else 's'} in {base_name(kernel.name)}" for kernel, count in counts)
    if not all(_is_evidence(technique, kernel) for kernel, _ in counts):
        return Amount(low, math.inf, f"{places}, which may mean something else: {technique.trap}")
    if counts:
        unseen = ", built and not seen to run" if own and seen.hidden and not seen.launches else ""
        return Amount(low, math.inf if seen.no_code else low, places + unseen)
    # What a side claims has to be in code that it brings; of PyTorch's own kernels nobody can say what they do not contain.
    if seen.no_code and not (own and kernels):
        return Amount(0, math.inf, seen.no_code)
    idle = [base_name(kernel.name) for kernel in seen.kernels if part in kernel.name and _count(technique, kernel)]
    if idle:
        launched = listed(base_name(demangled(launch.kernel)) for launch in seen.launches)
        return Amount(0, 0, f"only in {listed(idle)}, which step does not launch; it launches {launched}")
    where = listed(base_name(kernel.name) for kernel in kernels)
    return Amount(0, 0, f"none in {where}" if where else f"no kernel has {part!r} in its name" if part else "no kernel at all")


def _count(technique: Technique, kernel: Kernel) -> int:
    return sum(bool(technique.pattern.search(instruction)) for instruction in kernel.instructions)


def _is_evidence(technique: Technique, kernel: Kernel) -> bool:
    """Whether a match in `kernel` means the technique, and not something else for which the compiler uses the same instruction."""
    rows = techniques()
    if technique.beside and not _count(rows[technique.beside], kernel):
        return False
    return not any(_count(rows[name], kernel) for name in technique.unless)


def _in_code(measure: Measure, seen: Seen) -> Amount:
    kernels = [kernel for kernel in seen.launched_kernels if measure.kernel in kernel.name]
    if not kernels:
        return Amount(0, math.inf, seen.no_code or f"no kernel has {measure.kernel!r} in its name")
    value, name = max((kernel.registers if measure.kind == "registers" else kernel.spill_bytes, kernel.name) for kernel in kernels)
    told = f"{value} {'registers' if measure.kind == 'registers' else 'bytes of spills'} in {base_name(name)}"
    # A kernel that is named is one that the side brings.
    return Amount(value, math.inf if seen.no_code and not measure.kernel else value, told)


def _launched(measure: Measure, seen: Seen) -> Amount:
    launches = [launch for launch in seen.launches if measure.kernel in demangled(launch.kernel)]
    names = listed(base_name(demangled(launch.kernel)) for launch in launches)
    if measure.kind in COUNTED:
        calls, nodes = len({launch.call for launch in launches}), sum(launch.in_graph for launch in launches)
        blocks = sum(math.prod(launch.grid) for launch in launches)
        value = {"launches": calls, "kernels": len(launches), "graph_nodes": nodes, "blocks": blocks}[measure.kind]
        noun = _SINGULAR[measure.kind] if value == 1 else measure.kind.replace("_", " ")
        told = f"{value} {noun}{f' of {names}' if names else ''}"
        if not seen.hidden:
            return Amount(value, value, told)
        if seen.kernels and not seen.no_code and not any(measure.kernel in kernel.name for kernel in seen.kernels):
            return Amount(0, 0, f"no kernel of the library has {measure.kernel!r} in its name")
        return Amount(value, math.inf, f"{told}; {seen.hidden}" if value else seen.hidden)
    if not launches:
        return Amount(0, math.inf, seen.hidden or f"no launch of a kernel with {measure.kernel!r} in its name")
    if measure.kind == "cluster" and any(launch.cluster is None for launch in launches):
        return Amount(0, math.inf, "a trace does not tell clusters; `counter launch__cluster_dim_x` does when the run is profiled")
    value = max(_of_launch(measure.kind, launch) for launch in launches)
    return Amount(
        value, math.inf if seen.hidden and not measure.kernel else value, f"{measure.kind.replace('_', ' ')} of {value} in {names}"
    )


def _of_launch(kind: str, launch: Launch) -> int:
    cluster = 1 if launch.cluster is None else launch.cluster
    return {
        "grid": math.prod(launch.grid),
        "block": math.prod(launch.block),
        "cluster": cluster,
        "shared_memory": launch.shared_bytes,
    }[kind]


def _overlap(names: Sequence[str], seen: Seen) -> Amount:
    if not seen.spans:
        return Amount(0, math.inf, "what runs at the same time is seen on a GPU")
    if not names:
        return _overlap_of_streams(seen.spans)
    first, second = ([(span.start_ns, span.end_ns) for span in seen.spans if name in span.name] for name in names)
    for name, found in zip(names, (first, second), strict=True):
        if not found:
            return Amount(0, 0, f"nothing that ran has {name!r} in its name")
    share = overlap(first, second)
    return Amount(share, share, f"both run in {100 * share:.0f} % of the shorter one's time")


def _overlap_of_streams(spans: Iterable[Span]) -> Amount:
    streams: dict[int, list[tuple[float, float]]] = {}
    for span in spans:
        streams.setdefault(span.stream, []).append((span.start_ns, span.end_ns))
    share = hidden_share(streams.values())
    if len(streams) == 1:
        return Amount(share, share, "all runs on one stream")
    return Amount(share, share, f"{len(streams)} streams hide {100 * share:.0f} % of what the busiest of them could hide")


def _called(name: str, seen: Seen) -> Amount:
    if not seen.calls:
        return Amount(0, math.inf, "what the host calls is seen on a GPU")
    found = {each: count for each, count in seen.calls.items() if name in each}
    told = ", ".join(f"{count} of {each}" for each, count in found.items())
    return Amount(sum(found.values()), sum(found.values()), told or f"no call with {name!r} in its name")


def listed(names: Iterable[str], most: int = 4) -> str:
    """Different names in their order; of more than `most` how many others there are."""
    different = list(dict.fromkeys(names))
    others = len(different) - most
    return ", ".join(different[:most]) + (f" and {others} other{'s' if others > 1 else ''}" if others > 0 else "")


def _names(architectures: Iterable[str]) -> str:
    return ", ".join(f"sm_{name}" for name in architectures)
