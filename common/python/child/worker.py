"""The process of one side: builds, prepares, checks and times it. It never judges its own answers."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

import nvtx
import torch

from common.python.build import nvcc
from common.python.child.device.escape import HeldCall
from common.python.child.device.footprint import DeviceMemory, Start, blocks_of, footprint_of
from common.python.child.device.sampler import Sampler
from common.python.child.device.streams import work_on_quickest_stream
from common.python.child.device.trace import compiled_kernels, start_tracing, trace
from common.python.child.distributed import Alone, Together, join, take_device
from common.python.child.family import BetweenCalls, adopt_orphans, cores_in_use
from common.python.child.outputs import dump
from common.python.child.reported import metrics_of, reported_of
from common.python.child.serving.line import Line
from common.python.child.sides.compare import (
    changed,
    check_inputs,
    check_placement,
    poison,
    poison_free_blocks,
    snapshot,
    snapshot_behind,
    take_outputs,
)
from common.python.child.sides.compiled import Compiler
from common.python.child.sides.inputs import Inputs, warm_digest
from common.python.child.sides.loader import Side, Step, imported, load_side, load_workload, look_back
from common.python.child.sides.triton import (
    compile_ahead,
    forget_compiled,
    mend_interpreter,
    mend_interpreter_of_side,
    start_triton,
    was_interpreted,
)
from common.python.child.tamper import seal
from common.python.errors import SideFailure, Status
from common.python.machine.description import profiler_attached, set_compile_environment
from common.python.machine.numa import nodes_of_this_core
from common.python.pairs.directives import read_directives
from common.python.pairs.sources import cubins_of, digest_of
from common.python.pairs.workload import Metric, Workload, call_by_name
from common.python.processes import messages
from common.python.processes.messages import Answer, AnyRequest, Call
from common.python.results import WARM_FILES, ReportedMetric

_LINGER_S = 0.02  # how long a CPU side that returned too early is given to show itself


@dataclass(frozen=True)
class _Loaded:
    workload: Workload
    side: Side
    request: messages.Load
    device: torch.device

    def another_side(self) -> Side:
        """A second instance, for buffers of its own."""
        library = Path(self.request.library) if self.request.library else None
        return load_side(Path(self.request.side), self.workload, library, self.device)


@dataclass(frozen=True)
class _Prepared:
    """The side set up as a request says, once or in several copies that share nothing but constants."""

    request: messages.Prepare
    copies: tuple[tuple[Inputs, Step], ...]
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class _Done:
    """A checked call: copies of its outputs, its inputs' digest and which it changed, whether an output still changed, and its seconds."""

    outputs: dict[str, torch.Tensor]
    digest: str
    modified: tuple[str, ...]
    late: bool
    seconds: float


class Worker:
    """Answers the requests that concern one side."""

    def __init__(self) -> None:
        self._maybe_loaded: _Loaded | None = None
        self._maybe_prepared: _Prepared | None = None
        self._outputs: dict[str, torch.Tensor] = {}
        self._dumped: list[dict[str, torch.Tensor]] = []  # what the referee may read until the next request
        self._sampler: Sampler | None = None
        self._together: Together = Alone()
        self._maybe_line: Line | None = None
        self._start = Start(0, 0)
        self._numa_nodes: list[int] = []
        self._of_workload: dict[str, ModuleType] = {}  # modules that are there without the side
        self._compiler = Compiler()
        self._broken = seal()
        self._cores = os.sched_getaffinity(0)

    def answer(self, request: AnyRequest) -> Answer:
        """Do what `request` asks, in an NVTX range of its name. Raises SideFailure, or whatever the side raises."""
        self._dumped.clear()
        with nvtx.annotate(request.kind):
            answer = self._answer(request)
        if not isinstance(request, messages.Check | messages.Warm | messages.Time | messages.Serve):
            return answer
        return answer.model_copy(update={"compiler": self._compiler.findings(), "imported": self._imported()})

    def _answer(self, request: AnyRequest) -> Answer:
        match request:
            case messages.Build():
                return self._build(request)
            case messages.Open():
                return self._open(request)
            case messages.Load():
                return self._load(request)
            case messages.Prepare():
                return self._prepare(request)
            case messages.Check():
                return self._check(request)
            case messages.Warm():
                return self._warm(request)
            case messages.Weigh():
                return self._weigh(request)
            case messages.Time():
                return self._time(request)
            case messages.Rehearse():
                return self._rehearse(request)
            case messages.Watch():
                return self._watch(request)
            case messages.Serve():
                return self._serve(request)
            case messages.Ahead():
                return compile_ahead(request)
            case _:
                raise SideFailure(Status.CRASHED, f"a worker was asked for {request.kind}; expected something about one side")

    def close(self) -> None:
        """Give back what the side and its inputs hold, and leave the other ranks."""
        self._give_back()
        self._together.end()

    def _give_back(self) -> None:
        if self._maybe_prepared is not None:
            for side in self._maybe_prepared.sides:
                side.close()
            for inputs, _ in self._maybe_prepared.copies:
                inputs.remove_files()

    def _build(self, request: messages.Build) -> Answer:
        built = nvcc.build(
            Path(request.source),
            tuple(request.architectures),
            flags=request.flags,
            cache=Path(request.cache),
            root=Path(request.root),
        )
        return messages.BuildDone(
            nonce=request.nonce, library=str(built.library), seconds=built.seconds, cached=built.cached, log=built.log
        )

    def _open(self, request: messages.Open) -> Answer:
        take_device(request.rank, request.ranks)
        torch.cuda.synchronize()  # before anything else there is no context yet
        if request.choose:
            work_on_quickest_stream()
        return messages.Ready(nonce=request.nonce)

    def _load(self, request: messages.Load) -> Answer:
        device = torch.device(request.device)
        new = Path(tempfile.mkdtemp(prefix="compile_caches_", dir=request.folder)) if request.cold else None
        kept = Path(request.caches) if request.caches else None
        threads = len(os.sched_getaffinity(0)) if kept and device.type == "cuda" else 0
        on_cpu = device.type == "cpu"  # any side may import a package with Triton kernels, and nothing else runs them there
        set_compile_environment(interpret=request.interpret or on_cpu, caches=new or kept, graphs=kept, threads=threads)
        if request.interpret:
            mend_interpreter()
        self._together = join(request)
        if device.type == "cuda":
            work_on_quickest_stream()
            warm_digest(device)  # here, where the sides of a row load side by side
            self._start = Start.of(DeviceMemory())
        else:
            torch.set_num_threads(1)
        if request.cores:
            os.sched_setaffinity(0, request.cores)
            self._cores = set(request.cores)
        if request.watched:
            start_tracing()
        workload_file, side_file = Path(request.workload), Path(request.side)
        if device.type == "cpu":
            take_quick_fp8(workload_file, side_file)
        if digest_of(workload_file, side_file, *cubins_of(side_file)) != request.digest:
            reason = f"{side_file.name} or {workload_file.name} changed while the run went on; expected the text that the run began with"
            raise SideFailure(Status.WRONG_RESULT, reason)
        begin = time.perf_counter() - (start_triton() if request.triton else 0.0)  # who runs this side pays for that
        harness = set(sys.modules)
        workload = load_workload(workload_file)
        self._of_workload = dict(sys.modules)
        if request.past is not None and side_file.is_relative_to(request.past.then):
            before = time.perf_counter()
            look_back(request.past, harness)
            begin += time.perf_counter() - before  # which the other side has not to pay
        side = load_side(side_file, workload, Path(request.library) if request.library else None, device)
        self._maybe_loaded = _Loaded(workload, side, request, device)
        seconds = time.perf_counter() - begin
        mend_interpreter_of_side()
        return messages.Loaded(nonce=request.nonce, seconds=seconds)

    def _prepare(self, request: messages.Prepare) -> Answer:
        loaded = self._loaded
        if self._maybe_prepared is not None and self._maybe_prepared.request.shape != request.shape:
            forget_compiled()
        self._compiler.begin()
        if self._maybe_prepared is not None:
            gc.unfreeze()  # what was set up before is garbage now; what was there before the fork never is
        self._give_back()
        sides = [loaded.side, *(loaded.another_side() for _ in range(request.copies - 1))]
        copies = []
        seconds = 0.0
        for side in sides:
            place = loaded.request.rank, loaded.request.ranks
            before = sys.modules.keys() if loaded.request.past is None else set(sys.modules)
            inputs = Inputs(loaded.workload, request.shape, request.seed, loaded.device, Path(loaded.request.folder), place)
            self._of_workload |= {name: sys.modules[name] for name in sys.modules.keys() - before}
            self._numa_nodes = nodes_of_this_core() if loaded.device.type == "cuda" and inputs.is_hosted else []
            poison_free_blocks(inputs.answers(), loaded.device)
            _wait(loaded.device)
            begin = time.perf_counter()
            step = side.prepare(self._given(inputs), {**request.shape, **self._together.names})
            _wait(loaded.device)
            seconds = time.perf_counter() - begin
            mend_interpreter_of_side()
            inputs.rewrite(request.live_seed)
            copies.append((inputs, step))
        # What a first call loads or compiles waits for the device, so no copy's may come while its stream is held.
        if request.copies > 1 or request.call:
            begin = time.perf_counter()
            for _, step in copies:
                step()
            _wait(loaded.device)
            seconds += time.perf_counter() - begin if request.call else 0.0
        self._maybe_prepared = _Prepared(request, tuple(copies), tuple(sides))
        self._outputs, self._sampler = {}, None
        return messages.Prepared(nonce=request.nonce, seconds=seconds)

    def _imported(self) -> list[str]:
        past = self._loaded.request.past
        return imported(past, self._of_workload) if past is not None else []

    def _given(self, inputs: Inputs) -> dict[str, object]:
        """The inputs, and where requests are served what stands for their clients."""
        loaded, serving = self._loaded, self._loaded.workload.serving
        if serving is None:
            return inputs.values
        self._maybe_line = Line(serving.vocabulary, loaded.device, Path(loaded.request.side).name)
        return {**self._maybe_line.given, **inputs.values}

    def _serve(self, request: messages.Serve) -> Answer:
        loaded, (inputs, step) = self._loaded, self._prepared.copies[0]
        if self._maybe_line is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to serve what is no serving workload; expected one that is")
        if request.core >= 0:
            os.sched_setaffinity(0, {request.core})
        on_gpu = loaded.device.type == "cuda"
        gc.collect()
        gc.freeze()  # a trace takes seconds, in which the collector stays on
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        broken, set_profile, set_trace = self._broken, sys.setprofile, sys.settrace  # bound before the step can replace them
        self._maybe_line.run(step, Path(request.ring))
        set_profile(None)
        set_trace(None)
        _require_whole(broken())
        self._require_own_cores()
        peak = torch.cuda.max_memory_allocated() if on_gpu else 0
        metrics = self._reported() | self._maybe_line.reported
        return messages.Served(nonce=request.nonce, digest=inputs.digest(), peak_memory_bytes=peak, metrics=metrics)

    def _check(self, request: messages.Check) -> Answer:
        calls = []
        seconds: list[float] = []
        # A copy of pageable memory can wait for what its stream waits for.
        holds = self._loaded.device.type == "cuda" and not profiler_attached() and not self._prepared.copies[0][0].has_pageable
        for position, seed in enumerate(request.seeds):
            # The last call is made on a held stream, where there is one, to see that all its work is on it.
            # Under a profiler, which waits for each kernel, the one that holds the stream would wait for what comes behind it.
            held = holds and position > 0 and position + 1 == len(request.seeds)
            call, elapsed = self._checked_steps(seed, f"{request.prefix}_{position}", position > 0, seconds[-1] if held else None)
            calls.append(call)
            seconds.append(elapsed)
        if dict(self._prepared.request.shape) in map(dict, self._loaded.workload.check_at):  # of others they may take long
            self._metrics()
        return messages.Checked(nonce=request.nonce, calls=calls, first_call_s=seconds[0], interpreted=was_interpreted())

    def _checked_steps(self, seed: int, prefix: str, again: bool, call_s: float | None) -> tuple[Call, float]:
        """One call and its seconds, on a held stream after one that took `call_s`; where a state evolves, its last step, the first's."""
        workload = self._loaded.workload
        if workload.evolves and again:
            self._prepare(self._prepared.request)
        modified: set[str] = set()
        late = False
        seconds = []
        for step in range(workload.steps):
            done = self._checked_call(seed + step, call_s if step + 1 == workload.steps else None)
            modified.update(done.modified)
            late |= done.late
            seconds.append(done.seconds)
        inputs, outputs = sorted(modified), self._dump(done.outputs, prefix)
        escaped: Literal["", "late"] = "late" if late else ""
        earlier = self._prepared.copies[0][0].earlier
        return Call(seed=seed, digest=done.digest, modified=inputs, escaped=escaped, outputs=outputs, earlier=earlier), seconds[0]

    def _checked_call(self, seed: int, call_s: float | None) -> _Done:
        workload, device = self._loaded.workload, self._loaded.device
        inputs, step = self._prepared.copies[0]
        inputs.rewrite(seed)
        digest = inputs.digest()
        in_place = {name: tensor for name, tensor in inputs.tensors() if workload.may_change(name)}
        before = snapshot({name: tensor for name, tensor in inputs.tensors() if name not in in_place})
        reused = {**self._outputs, **{str(i): tensor for i, tensor in enumerate(self._prepared.sides[0].workspace())}}
        for tensor in reused.values():
            poison(tensor)
        poison_free_blocks(inputs.answers(), device)
        _wait(device)
        self._together.meet()  # before another may write here, and behind the call before anything that it may read is rewritten
        broken, set_profile, set_trace = self._broken, sys.setprofile, sys.settrace  # bound before the step can replace them
        call = None
        begin = time.perf_counter()
        if call_s is not None:
            call = HeldCall(step, self._take, inputs.answers(), reused | in_place, call_s, self._together)
            returned = call.returned
        else:
            returned = step()
        set_profile(None)  # or a function of the side's would run before the next line
        set_trace(None)
        _require_whole(broken())
        taken = self._take(returned)
        now = call.behind if call else snapshot_behind(taken, device)  # on its stream: what is not done by then does not count
        _wait(device)
        elapsed = time.perf_counter() - begin
        self._together.meet()
        late = _still_changes(now, taken) or bool(call and call.escaped)
        modified = changed(before, inputs.tensors())
        self._outputs = {name: tensor for name, tensor in taken.items() if name not in in_place}
        return _Done(now, digest, tuple(modified), late, elapsed)

    def _dump(self, tensors: dict[str, torch.Tensor], prefix: str) -> list[messages.Dump]:
        self._dumped.append(tensors)
        return dump(tensors, f"{prefix}_{self._loaded.request.rank}")

    def _take(self, returned: object, copy: int = 0) -> dict[str, torch.Tensor]:
        loaded, prepared = self._loaded, self._prepared
        inputs = prepared.copies[copy][0]
        file = Path(loaded.request.side).name
        check_inputs(inputs.tensors(), file)
        in_place = {name: tensor for name, tensor in inputs.tensors() if loaded.workload.may_change(name)}
        outputs = inputs.outputs()
        taken = take_outputs(returned, outputs, in_place, file)
        check_placement(taken, outputs, inputs.tensors(), loaded.device, file)
        return taken | inputs.state()

    def _warm(self, request: messages.Warm) -> Answer:
        loaded, prepared = self._loaded, self._prepared
        own_core = request.cores[loaded.request.rank :][:1]
        if own_core and self._together.ranks == 1:
            os.sched_setaffinity(0, own_core)
        peak, begin = 0, time.perf_counter()
        if loaded.device.type == "cuda" and request.calls != 0:
            torch.cuda.reset_peak_memory_stats()
            prepared.copies[0][1]()
            _wait(loaded.device)
            peak = torch.cuda.max_memory_allocated()
        call_s = time.perf_counter() - begin
        if own_core:  # of ranks behind a call, for what serves a communicator starts with its first use and would share the core
            os.sched_setaffinity(0, own_core)
        label = f"{Path(loaded.request.side).stem}/step"
        self._sampler = Sampler(loaded.workload, prepared.copies, loaded.device, label, self._take, request.calls_per_sample)
        self._sampler.join(self._together)
        self._sampler.hold &= request.hold and not profiler_attached()
        if {"threads", "processes"} & set(read_directives(Path(loaded.request.side)).allows):
            adopt_orphans()
            self._sampler.between = BetweenCalls()
        self._sampler.settle()
        calls, step_ns, sample_ns = self._sampler.warm(request.seed, request.calls, request.seconds)
        # What is here now stays. A collection stands before each block, within the parent's wall clock: of what torch.compile imports it
        # would take some 70 ms, which the parent could not tell from work that the side hides.
        gc.collect()
        gc.freeze()
        return messages.Warmed(
            nonce=request.nonce,
            calls=calls,
            holds=self._sampler.hold,
            step_ns=step_ns,
            sample_ns=sample_ns,
            call_s=call_s,
            peak_memory_bytes=peak,
            metrics=self._reported(),
            numa_nodes=self._numa_nodes,
        )

    def _weigh(self, request: messages.Weigh) -> Answer:
        step = self._prepared.copies[0][1]
        if self._loaded.device.type == "cpu":
            blocks, size = blocks_of(step)
            return messages.Weighed(nonce=request.nonce, allocated_bytes=size, outside_bytes=0, blocks=blocks)
        found = footprint_of(step, self._start, DeviceMemory())
        return messages.Weighed(nonce=request.nonce, allocated_bytes=found.allocated, outside_bytes=found.outside)

    def _reported(self) -> dict[str, ReportedMetric]:
        return reported_of(self._metrics(), self._of_metrics)

    @property
    def _of_metrics(self) -> str:
        return f"{Path(self._loaded.request.workload).name}: metrics"

    def _metrics(self) -> dict[str, Metric]:
        workload = self._loaded.workload
        if workload.metrics is None:
            return {}
        inputs = self._prepared.copies[0][0]
        available = {**self._prepared.request.shape, **inputs.values, **self._together.names}
        return metrics_of(call_by_name(workload.metrics, available, self._of_metrics), self._of_metrics)

    def _time(self, request: messages.Time) -> Answer:
        sampler = self._sampler
        if sampler is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to time before it was warm; expected warm first")
        sampler.hold = request.hold
        each = sampler.calls_per_sample
        picks: list[Call] = []
        broken = self._broken  # bound before a step can replace it

        def keep(i: int) -> None:
            mine = [pick for pick in request.picks if pick // each == i]
            if mine:
                _require_whole(broken())
                picks.extend(self._picked(sampler, pick % each, request.seed + pick, f"{request.prefix}_{pick}") for pick in mine)
                self._require_own_cores()

        looks = {pick // each: pick % each for pick in request.picks}
        samples, void = sampler.block(request.seed, request.count, looks, keep, sustained=request.sustained)
        if sampler.between and (work := sampler.between.work()):
            raise SideFailure(Status.STREAM_ESCAPE, work)
        return messages.Timed(
            nonce=request.nonce,
            samples_ns=[sample.ns for sample in samples],
            sm_clock_hz=[sample.sm_clock_hz for sample in samples if sample.sm_clock_hz],
            queued_ns=sum(sample.queued_ns for sample in samples) * each,
            void=void,
            picks=picks,
            notes=[WARM_FILES] if sampler.warm_files else [],
            began_ns=[sample.began_ns for sample in samples if sample.began_ns],
        )

    def _rehearse(self, request: messages.Rehearse) -> Answer:
        self._prepare(messages.Prepare(shape=request.shape, seed=request.seed, live_seed=request.live_seed))
        _, step = self._prepared.copies[0]
        step()
        _wait(self._loaded.device)
        return messages.Ready(nonce=request.nonce)

    def _watch(self, request: messages.Watch) -> Answer:
        _, step = self._prepared.copies[0]
        launches, spans, calls = trace(step, self._together)
        return messages.Observed(nonce=request.nonce, launches=launches, spans=spans, cubins=compiled_kernels(), missed="", calls=calls)

    def _picked(self, sampler: Sampler, copy: int, seed: int, prefix: str) -> Call:
        # A state that evolves is judged over this one call, from where the call found it: a replay from `prepare` on would be as long as
        # all timed calls together, and so would be its error. So one wrong call that is not picked goes unseen, though its trace lasts.
        kept = sampler.kept(copy)
        inputs = self._prepared.copies[sampler.first + copy][0]
        outputs, found = self._dump(kept.outputs, prefix), self._dump(sampler.found[copy], f"{prefix}_found")
        return Call(
            seed=seed,
            digest=inputs.digest(),
            modified=[],
            escaped=kept.escaped,
            outputs=outputs,
            found=found,
            earlier=inputs.earlier,
            behind_ns=kept.behind_ns,
        )

    def _require_own_cores(self) -> None:
        if away := cores_in_use() - self._cores:
            found, expected = (", ".join(map(str, sorted(cores))) for cores in (away, self._cores))
            raise SideFailure(
                Status.STREAM_ESCAPE, f"found a thread or process of it that may run on cores {found}; expected cores {expected} alone"
            )

    @property
    def _loaded(self) -> _Loaded:
        if self._maybe_loaded is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to prepare before it had loaded a side; expected load first")
        return self._maybe_loaded

    @property
    def _prepared(self) -> _Prepared:
        if self._maybe_prepared is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to call a step before it was prepared; expected prepare first")
        return self._maybe_prepared


def take_quick_fp8(*files: Path) -> None:
    """Multiply without oneDNN where one of a side's files needs FP8: on most CPUs its product of FP8 is a loop over scalars."""
    if any("fp8" in read_directives(file).needs for file in files):
        torch.backends.mkldnn.set_flags(_enabled=False)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _require_whole(problem: str) -> None:
    if problem:
        raise SideFailure(Status.WRONG_RESULT, problem)


def _still_changes(taken_at_once: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]) -> bool:
    time.sleep(_LINGER_S)
    return bool(changed(taken_at_once, outputs.items()))
