"""The evidence for a row's claims: code out of built libraries, Triton ahead of time, and where there is a GPU a step that is watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

from common.python.build.nvcc import SUPPORTED, architectures_for
from common.python.build.sass import Kernel, Unreadable, base_name, demangled, read_code
from common.python.errors import SideFailure
from common.python.machine.description import Machine
from common.python.machine.needs import Capability, unmet_capability
from common.python.pairs.sources import cubins_of
from common.python.processes import messages
from common.python.prove.proofs import NOWHERE, Evidence, Seen, listed, nothing, prove
from common.python.prove.triton import Compilation, read_cubins
from common.python.results import BASELINE, KernelUse, Proof
from common.python.session.builds import make_all, room_for, side_by_side
from common.python.session.planning import Plan
from common.python.session.session import Session, SideAtWork

_NOT_RUN = "which kernels a step launches is seen on a GPU"
_SEEN_ON_GPUS = "what a step of several ranks launches is seen on GPUs"


def compilations_of(plan: Plan, session: Session) -> dict[str, list[Compilation]]:
    """Every Triton side of a row that claims something, for each supported architecture that meets its needs.

    None of a row of several ranks: a step waits for the others, so nothing is told of it ahead, on any architecture. If each architecture
    had evidence that says so, what was watched on one could never prove a claim.
    """
    if plan.described.ranks or not any(plan.claims.values()):
        return {}
    found = {}
    for side in filter(plan.uses_triton, plan.sides):
        needs = [need for each in (plan.workload_directives, plan.side_directives[side]) for need in each.needs]
        suitable = [capability for capability in SUPPORTED if not unmet_capability(needs, capability)]
        found[side] = [Compilation(plan, side, capability, session) for capability in suitable]
    return found


def compile_ahead(plans: Sequence[Plan], session: Session, tell: Callable[[str], None]) -> None:
    """Compile the steps of the Triton sides of `plans` that are not known, and list their machine code. What fails is left for its row."""
    found = [each for plan in plans if not plan.described.mismatch for each in chain(*compilations_of(plan, session).values())]
    unknown = {each.entry: each for each in found if each.entry and each.observed is None}
    make_all(list(unknown.values()), lambda done: tell(f"compiled {done} steps of Triton sides"))


def read_evidence(plan: Plan, session: Session) -> dict[str, dict[str, Seen]]:
    """What can be known of every side without a GPU. Nothing that goes wrong is raised: it is why something is not known."""
    compilations = compilations_of(plan, session)
    if unknown := [each for found in compilations.values() for each in found if each.observed is None]:
        names = [listed(each.file.name for each in unknown), listed(f"sm_{_name(each.capability)}" for each in unknown)]
        session.tell(f"compiling {' for '.join(names)}")
        side_by_side(unknown, room_for(Compilation.memory_bytes))
    with ThreadPoolExecutor() as readers:  # a disassembler at work is another process
        ahead = {
            side: {_name(each.capability): readers.submit(_seen_ahead, each) for each in found} for side, found in compilations.items()
        }
        others = {side: readers.submit(_read_side, plan, side, session) for side in plan.sides if side not in ahead}
        return {
            side: others[side].result() if side in others else {name: seen.result() for name, seen in ahead[side].items()}
            for side in plan.sides
        }


def _read_side(plan: Plan, side: str, session: Session) -> dict[str, Seen]:
    if cubins_of(plan.file(side)):
        return _read_code(lambda: _brought(plan.file(side)))
    if plan.file(side).suffix != ".cu":
        return nothing(_SEEN_ON_GPUS if plan.described.ranks else "what PyTorch launches is seen on a GPU")
    built = session.builds.get(str(plan.file(side)))
    return nothing("it was not built") if built is None else _read_code(lambda: read_code(Path(built.library), built.log))


def _brought(side: Path) -> tuple[Kernel, ...]:
    """The kernels of the cubins that a Python side brings. Raises Unreadable."""
    return read_cubins(map(str, cubins_of(side)))


def _read_code(read: Callable[[], Sequence[Kernel]]) -> dict[str, Seen]:
    try:
        kernels = read()
    except Unreadable as problem:
        return nothing(str(problem))
    names = dict.fromkeys(kernel.architecture for kernel in kernels)
    return {name: Seen(tuple(kernel for kernel in kernels if kernel.architecture == name), hidden=_NOT_RUN) for name in names}


def _seen_ahead(compilation: Compilation) -> Seen:
    observed = compilation.observed
    if observed is None:
        return Seen(hidden=compilation.why, no_code=compilation.why)
    try:
        return Seen(compilation.read(), tuple(observed.launches), hidden=observed.missed, no_code=observed.missed)
    except Unreadable as problem:
        return Seen(hidden=str(problem), no_code=str(problem))


def fork_watched(plan: Plan, session: Session, stack: ExitStack) -> dict[str, SideAtWork]:
    """A worker to be watched for every side, if there is a GPU and a side claims something; until `stack` ends.

    They begin to load at once, in the background: CUPTI takes seconds to start, in which the row can be verified. Triton's cache is
    their own, in which there are then this step's kernels and no others; graphs of torch.compile come from the row's.
    """
    if plan.device != "cuda" or not any(plan.claims.values()):
        return {}
    workers = {side: stack.enter_context(session.fork_side(plan, side, cold=True, watched=True)) for side in plan.sides}
    for worker in workers.values():
        worker.begin_load()
    return workers


def watch_evidence(
    plan: Plan, session: Session, machine: Machine, evidence: dict[str, dict[str, Seen]], workers: dict[str, SideAtWork]
) -> None:
    """Run one step of every side in its worker, and add what it launched to `evidence`, by side and architecture.

    `workers` come from `fork_watched`. Without workers nothing is run and nothing is added.
    A side that fails, or launches what cannot be read, is noted in `evidence` with the reason.
    """
    if not workers:
        return
    architecture = _name(machine.gpus[0].capability)
    shape = next(iter(plan.timed.values()))
    at_work: dict[str, SideAtWork] = {}
    for side, worker in workers.items():
        try:
            worker.finish_load()
            worker.begin(messages.Rehearse(shape=shape, seed=session.new_seed(), live_seed=session.new_seed()))
            at_work[side] = worker
        except SideFailure as failure:
            _hide(evidence[side], failure.reason)
    rehearsed: dict[str, SideAtWork] = {}
    for side, worker in at_work.items():
        session.tell(f"rehearsing a step of {side}")
        try:
            worker.finish(messages.Ready, session.limit_s("prepare"))
            rehearsed[side] = worker
        except SideFailure as failure:
            _hide(evidence[side], failure.reason)
            worker.begin_close()
    for side, worker in rehearsed.items():  # one at a time: what two processes have a GPU do takes turns, and overlaps otherwise than alone
        known = evidence[side]
        session.tell(f"watching a step of {side}")
        try:
            worker.begin(messages.Watch())
            observed = worker.finish(messages.Observed, session.limit_s("prepare"))
            seen = _watched(observed, known.get(architecture), plan.file(side), architecture)
        except (SideFailure, Unreadable) as problem:
            _hide(known, problem.reason if isinstance(problem, SideFailure) else str(problem))
        else:
            known.pop(NOWHERE, None)
            known[architecture] = seen
        worker.begin_close()


def _hide(known: dict[str, Seen], why: str) -> None:
    known.update({name: replace(seen, hidden=seen.hidden and why, no_code=seen.no_code and why) for name, seen in known.items()})


def add_counters(known: dict[str, Seen], machine: Machine, counters: Mapping[str, float], elsewhere: str = "") -> None:
    """Add what a profiler counted in a step of a side on this machine's GPU; what else is known of the side stays.

    Counters of a shape that is not the workload's prove nothing and refute nothing: `elsewhere` says so, and they are left out.
    """
    architecture = _name(machine.gpus[0].capability)
    for name in [architecture] if architecture in known else list(known):
        known[name] = replace(known[name], uncounted=elsewhere) if elsewhere else replace(known[name], counters=counters)


def _watched(observed: messages.Observed, known: Seen | None, side: Path, architecture: str) -> Seen:
    launches, spans = tuple(observed.launches), tuple(observed.spans)
    if side.suffix == ".cu" and known is not None:
        return Seen(known.kernels, launches, spans, calls=observed.calls)
    brought = (kernel for kernel in _brought(side) if kernel.architecture == architecture)
    kernels = (*brought, *read_cubins(observed.cubins))
    names = {kernel.name for kernel in kernels}
    others = listed(base_name(name) for name in (demangled(launch.kernel) for launch in launches) if name not in names)
    no_code = f"no machine code of {others} is at hand" if others else ""
    return Seen(kernels, launches, spans, no_code=no_code, calls=observed.calls)


def _name(capability: Capability) -> str:
    return architectures_for((), capability)[0]


def proofs_of(plan: Plan, evidence: Evidence) -> tuple[Proof, ...]:
    """Every claim of the row and what the evidence says of it."""
    return tuple(prove(claim, side, evidence) for side, claims in plan.claims.items() for claim in claims)


def kernel_uses(known: Mapping[str, Seen]) -> Iterator[KernelUse]:
    """What the kernels of a side take, on every architecture for which that is known."""
    for architecture, seen in known.items():
        launches = Counter(demangled(launch.kernel) for launch in seen.launches)
        occupancy = {demangled(launch.kernel): launch.occupancy_percent for launch in seen.launches}
        for kernel in seen.launched_kernels:
            yield KernelUse(
                name=kernel.name,
                architecture=architecture,
                registers=kernel.registers,
                spill_bytes=kernel.spill_bytes,
                shared_bytes=max(
                    [kernel.shared_bytes, *(one.shared_bytes for one in seen.launches if demangled(one.kernel) == kernel.name)]
                ),
                launches=launches.get(kernel.name),
                occupancy_percent=occupancy.get(kernel.name),
            )


def findings(plan: Plan, evidence: Evidence) -> Iterator[str]:
    """A sentence for each kernel that spills in a side that is not the baseline, and for such a side that does what the baseline does."""
    for side, known in evidence.items():
        if side == BASELINE:
            continue
        if _work(known) and _work(known) == _work(evidence.get(BASELINE, {})):
            yield f"{plan.file(side).name}: its launches and their machine code are the baseline's: a difference in device time is noise"
        for use in kernel_uses(known):
            if use.spill_bytes:
                kernel = f"{base_name(use.name)} on sm_{use.architecture}"
                yield f"{plan.file(side).name}: {kernel} spills {use.spill_bytes} bytes of registers; expected none in an optimized side"


def _work(known: Mapping[str, Seen]) -> dict[str, object]:
    """What a GPU does in a step, by architecture, where that is kernels on one stream, of which all launches and machine code are known."""
    return {
        name: (
            [(launch.kernel, launch.grid, launch.block, launch.in_graph) for launch in seen.launches],
            sorted((kernel.name, kernel.instructions) for kernel in seen.launched_kernels),
        )
        for name, seen in known.items()
        if seen.launches and not (seen.hidden or seen.no_code) and not _has_copies_or_streams(seen)
    }


def _has_copies_or_streams(seen: Seen) -> bool:
    """Whether a step was seen to do more than kernels one after another: sides may differ in how they copy, or in what runs together."""
    return len(seen.spans) > len(seen.launches) or len({span.stream for span in seen.spans}) > 1
