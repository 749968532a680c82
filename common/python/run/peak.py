"""Measures the ceilings of this machine, a device and a topic at a time, and keeps them."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from common.python.errors import BenchmarkError, SideFailure, UnfitEnvironment
from common.python.machine.ceilings import (
    ALL_REDUCE,
    MACHINES,
    Ceiling,
    DeviceName,
    MachineCeilings,
    fresh_ceilings,
    keep_ceilings,
    machine_key,
)
from common.python.machine.description import Gpu, Machine, child_environment, describe_machine, lock
from common.python.machine.doctor import fitness, unfit
from common.python.machine.telemetry import Telemetry
from common.python.processes import messages
from common.python.processes.fork_server import ANY_CORE, ForkServer
from common.python.processes.ranks import RankGroup
from common.python.project import PROJECT_ROOT
from common.python.session.planning import choose_device
from common.python.session.session import folder_in_memory
from common.python.settings import Device, Settings
from common.python.storage import make_folder

# By device: the topics, in order, and what a person is told of each.
TOPICS: dict[DeviceName, dict[str, str]] = {
    "cuda": {
        "dram": "DRAM, with a clean and with a dirty L2",
        "l2": "L2",
        "on_chip": "shared memory and multiply-add",
        "matrix": "matrix products and mma.sync, burst and sustained",
        "transfer": "copies to and from the host",
        "peer": "copies between GPUs",
        "launch": "launches",
        "storage": "storage",
    },
    "cpu": {"dram": "DRAM, one thread", "matrix": "matrix products, one thread", "storage": "storage"},
}
FRESH_H = 12.0
"""How long `--missing` takes what is kept for what would be measured now."""
_BETWEEN_GPUS = {"peer": "peer_out"}  # topics that need two GPUs, and a ceiling of theirs
NO_TIME = "there was no time left for it"
_TOPIC_S = 120.0
_PROBE_S = 120.0


def measure_peaks(
    device: Device, tell: Callable[[str], None], deadline: float = math.inf, *, missing: bool = False
) -> list[tuple[MachineCeilings, Path]]:
    """The ceilings of every device that `device` allows, auto being the GPUs and the CPU, and the file that each is kept in.

    `tell` takes a line on what is being measured; no topic begins after `deadline`, on the monotonic clock. With `missing`, what was
    measured in the last FRESH_H hours is kept, and only what it lacks is measured.
    Raises BenchmarkError, or UnfitEnvironment if this is no time to measure.
    """
    machine = describe_machine(PROJECT_ROOT)
    if problem := unfit(fitness(machine, PROJECT_ROOT)):
        raise UnfitEnvironment(f"found {problem}; expected a machine that is fit to measure on")
    make_folder(MACHINES)
    found = []
    with ForkServer(child_environment(PROJECT_ROOT, "cpu" if device is Device.CPU else "cuda")) as server:
        chosen = _chosen(device, machine, server)
        for index, gpu in enumerate(machine.gpus if chosen == "cuda" else ()):
            found.append(_kept(_survey(server, machine, (index, gpu), tell, deadline, missing=missing)))
        if len(found) > 1 and any(_lacks_all_reduce(ceilings, missing) for ceilings, _ in found):
            found = [_kept(each) for each in _all_reduced(server, machine, [ceilings for ceilings, _ in found], tell, deadline)]
    if device is not Device.CUDA:
        with ForkServer(child_environment(PROJECT_ROOT, "cpu")) as server:
            found.append(_kept(_survey(server, machine, None, tell, deadline, missing=missing)))
    return found


def _chosen(device: Device, machine: Machine, server: ForkServer) -> DeviceName:
    with tempfile.TemporaryDirectory() as folder, server.fork("describer", Path(folder) / "log.txt") as child:
        return choose_device(Settings(device=device), machine, child.ask(messages.Probe(), messages.Probed, _PROBE_S))


def _kept(ceilings: MachineCeilings) -> tuple[MachineCeilings, Path]:
    return ceilings, keep_ceilings(ceilings)


def _survey(
    server: ForkServer,
    machine: Machine,
    place: tuple[int, Gpu] | None,
    tell: Callable[[str], None],
    deadline: float = math.inf,
    *,
    missing: bool = False,
) -> MachineCeilings:
    """The ceilings of the GPU at `place`, CUDA's index and what it is, or of the CPU. Raises BenchmarkError if none could be measured.

    With `missing`, those that are kept and fresh, and beside them what they lack.
    """
    index, gpu = place or (0, None)
    device: DeviceName = "cuda" if gpu else "cpu"
    key, name = machine_key(machine, gpu), gpu.name if gpu else machine.cpu
    kept = fresh_ceilings(machine, gpu, FRESH_H) if missing else None
    topics = _lacking(kept, device, machine) if kept else TOPICS[device]
    if kept and not topics:
        tell(f"{name}: nothing is missing of what was measured {kept.measured}")
        return kept
    found = _Found()
    begin = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(lock(key if gpu else "cpu", "benchmark_cli peak"))
        telemetry = stack.enter_context(Telemetry((gpu,) if gpu else ()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peak_", dir=MACHINES)))
        requests = [messages.Survey(device=device, index=index, topic=topic, folder=str(folder)) for topic in topics]
        for number, request in enumerate(requests, start=1):
            if time.monotonic() >= deadline:
                found.missing[request.topic] = NO_TIME
                continue
            tell(f"[{number}/{len(topics)}] {name}: {topics[request.topic]}")
            found.ask(server, request)
        if telemetry.summary().throttled:
            found.notes.append("heat or a hardware slowdown held a clock down meanwhile: let the GPU cool and measure again")
    if kept:
        return _with(kept, found, topics, time.monotonic() - begin)
    if not found.ceilings:
        raise BenchmarkError(f"{name}: found {'; '.join(found.missing.values())}; expected at least one ceiling that can be measured")
    return _document(machine, gpu, found, time.monotonic() - begin)


def _document(machine: Machine, gpu: Gpu | None, found: _Found, seconds: float) -> MachineCeilings:
    return MachineCeilings(
        machine=machine_key(machine, gpu),
        name=gpu.name if gpu else machine.cpu,
        device="cuda" if gpu else "cpu",
        driver=gpu.driver if gpu else "",
        torch=machine.packages["torch"],
        measured=datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=seconds,
        sm_clock_max_mhz=gpu.sm_clock_max_mhz if gpu else None,
        memory_clock_max_mhz=gpu.memory_clock_max_mhz if gpu else None,
        power_limit_w=gpu.power_limit_w if gpu else None,
        cache_bytes=found.cache_bytes,
        ceilings=tuple(found.ceilings),
        missing=found.missing,
        notes=tuple(found.notes),
    )


def _lacks_all_reduce(ceilings: MachineCeilings, missing: bool) -> bool:
    return not missing or ALL_REDUCE not in {ceiling.name for ceiling in ceilings.ceilings}


def _all_reduced(
    server: ForkServer, machine: Machine, each: Sequence[MachineCeilings], tell: Callable[[str], None], deadline: float
) -> list[MachineCeilings]:
    """The ceilings of `each` GPU of the machine with that of an all-reduce of them all, measured by a process a GPU."""
    if time.monotonic() >= deadline:
        return [_and_all_reduce(one, (), NO_TIME) for one in each]
    tell(f"{len(each)} x {each[0].name}: all-reduce")
    with ExitStack() as stack:
        for gpu in machine.gpus:
            stack.enter_context(lock(gpu.uuid, "benchmark_cli peak"))
        # In memory: of a file on a disk the driver may refuse to map the pages by which ranks meet.
        folder = Path(stack.enter_context(folder_in_memory()))
        found, why = ask_ranks(server, "cuda", len(each), folder)
    return [_and_all_reduce(one, found, why) for one in each]


def ask_ranks(server: ForkServer, device: DeviceName, ranks: int, folder: Path) -> tuple[Sequence[Ceiling], str]:
    """What `ranks` processes find of an all-reduce among them, or why they did not."""
    request = messages.Survey(device=device, index=0, topic=ALL_REDUCE, folder=str(folder), rendezvous=str(folder / "rendezvous"))
    try:
        with ExitStack() as until_all:
            children = [until_all.enter_context(server.fork("surveyor", folder / f"log_rank{rank}.txt")) for rank in range(ranks)]
            group = RankGroup(children)
            group.begin(request)
            answer = group.finish(request, messages.Surveyed, _TOPIC_S)
            group.begin_close()
    except SideFailure as failure:
        return (), failure.reason
    return answer.ceilings, ""


def _and_all_reduce(ceilings: MachineCeilings, found: Sequence[Ceiling], why: str) -> MachineCeilings:
    others = tuple(ceiling for ceiling in ceilings.ceilings if ceiling.name != ALL_REDUCE)
    missing = {name: reason for name, reason in ceilings.missing.items() if name != ALL_REDUCE}
    return ceilings.model_copy(update={"ceilings": (*others, *found), "missing": missing | ({ALL_REDUCE: why} if why else {})})


def _lacking(kept: MachineCeilings, device: DeviceName, machine: Machine) -> dict[str, str]:
    """The topics of which nothing is kept: one that failed or had no time, and where there are several GPUs what lies between them."""
    lacking = set(kept.missing)
    if len(machine.gpus) > 1:
        known = {ceiling.name for ceiling in kept.ceilings}
        lacking |= {topic for topic, name in _BETWEEN_GPUS.items() if name not in known}
    return {topic: what for topic, what in TOPICS[device].items() if topic in lacking}


def _with(kept: MachineCeilings, found: _Found, topics: Iterable[str], seconds: float) -> MachineCeilings:
    """What is kept and what was found beside it; the date stays that of the first, so that nothing grows older than it says."""
    names = {ceiling.name for ceiling in found.ceilings}
    known = {name: why for name, why in kept.missing.items() if name not in {*topics, *names}}
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return kept.model_copy(
        update={
            "seconds": kept.seconds + seconds,
            "ceilings": (*(ceiling for ceiling in kept.ceilings if ceiling.name not in names), *found.ceilings),
            "missing": known | found.missing,
            "notes": (*kept.notes, *found.notes, f"measured later, {now}: {', '.join(topics)}"),
        }
    )


@dataclass
class _Found:
    """What the topics asked so far brought."""

    cache_bytes: int = 0
    ceilings: list[Ceiling] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ask(self, server: ForkServer, request: messages.Survey) -> None:
        """Measure a topic in a process of its own; one that fails is missing, and says why."""
        core = ANY_CORE if request.device == "cuda" else max(os.sched_getaffinity(0))
        try:
            with server.fork("surveyor", Path(request.folder) / "log.txt", core) as child:
                answer = child.ask(request, messages.Surveyed, _TOPIC_S)
        except SideFailure as failure:
            self.missing[request.topic] = failure.reason
            return
        self.cache_bytes = answer.cache_bytes
        self.ceilings += answer.ceilings
        self.missing |= answer.missing
        self.notes += answer.notes
