"""The process of one side: builds, prepares, checks and times it. It never judges its own answers."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from common.python import cuda_build, protocol
from common.python.environment import set_compile_environment
from common.python.errors import SideFailure, Status
from common.python.loader import Side, Step, load_side, load_workload
from common.python.protocol import Answer, AnyRequest, Call
from common.python.random_inputs import Inputs
from common.python.results import ReportedMetric
from common.python.timing import Sampler
from common.python.verification import changed, check_placement, dump, poison, poison_free_blocks, snapshot, take_outputs
from common.python.workload import Shape, Workload, call_by_name

_LINGER_S = 0.02  # how long a CPU side that returned too early is given to show itself


class Worker:
    """Answers the requests that concern one side."""

    def __init__(self) -> None:
        self._loaded: tuple[Workload, Side, protocol.Load] | None = None
        self._prepared: tuple[Inputs, Step, Shape] | None = None
        self._outputs: dict[str, torch.Tensor] = {}
        self._sampler: Sampler | None = None

    def answer(self, request: AnyRequest) -> Answer:
        """Do what `request` asks. Raises SideFailure, or whatever the side raises."""
        match request:
            case protocol.Build():
                return self._build(request)
            case protocol.Load():
                return self._load(request)
            case protocol.Prepare():
                return self._prepare(request)
            case protocol.Check():
                return self._check(request)
            case protocol.Warm():
                return self._warm(request)
            case protocol.Time():
                return self._time(request)
            case _:
                raise SideFailure(Status.CRASHED, f"a worker was asked for {request.kind}; expected build, load, prepare, check, warm or time")

    def close(self) -> None:
        """Give back what the side and its inputs hold."""
        if self._loaded is not None:
            self._loaded[1].close()
        if self._prepared is not None:
            self._prepared[0].remove_files()

    def _build(self, request: protocol.Build) -> Answer:
        built = cuda_build.build(
            Path(request.source),
            tuple(request.architectures),
            flags=request.flags,
            cache=Path(request.cache),
            root=Path(request.root),
        )
        return protocol.BuildDone(
            nonce=request.nonce, library=str(built.library), seconds=built.seconds, cached=built.cached, log=built.log
        )

    def _load(self, request: protocol.Load) -> Answer:
        set_compile_environment(interpret=request.interpret, cold_caches=Path(request.folder) if request.cold else None)
        begin = time.perf_counter()
        workload = load_workload(Path(request.workload))
        side = load_side(Path(request.side), workload, Path(request.library) if request.library else None)
        self._loaded = (workload, side, request)
        return protocol.Loaded(nonce=request.nonce, seconds=time.perf_counter() - begin)

    def _prepare(self, request: protocol.Prepare) -> Answer:
        workload, side, load = self._ready()
        device = torch.device(load.device)
        inputs = Inputs(workload, request.shape, request.seed, device, Path(load.folder))
        poison_free_blocks(workload.outputs(**request.shape), device)
        begin = time.perf_counter()
        step = side.prepare(inputs.values, request.shape)
        _wait(device)
        seconds = time.perf_counter() - begin
        inputs.rewrite(request.live_seed)
        self._prepared = (inputs, step, request.shape)
        self._outputs, self._sampler = {}, None
        return protocol.Prepared(nonce=request.nonce, seconds=seconds, digest=inputs.digest())

    def _check(self, request: protocol.Check) -> Answer:
        calls = []
        seconds = []
        for position, seed in enumerate(request.seeds):
            call, elapsed = self._checked_call(seed, f"{request.prefix}_{position}")
            calls.append(call)
            seconds.append(elapsed)
        return protocol.Checked(nonce=request.nonce, calls=calls, first_call_s=seconds[0])

    def _checked_call(self, seed: int, prefix: str) -> tuple[Call, float]:
        workload, side, load = self._ready()
        inputs, step, shape = self._set_up()
        device = torch.device(load.device)
        inputs.rewrite(seed)
        digest = inputs.digest()
        before = snapshot({name: tensor for name, tensor in inputs.tensors() if name not in workload.in_place})
        for tensor in [*side.workspace(), *self._outputs.values()]:
            poison(tensor)
        poison_free_blocks(workload.outputs(**shape), device)
        _wait(device)
        begin = time.perf_counter()
        returned = step()
        _wait(device)
        elapsed = time.perf_counter() - begin
        taken = self._take(returned)
        now = snapshot(taken)
        escaped = load.device == "cpu" and _still_changes(now, taken)
        modified = changed(before, inputs.tensors())
        self._outputs = {name: tensor for name, tensor in taken.items() if name not in workload.in_place}
        return Call(seed=seed, digest=digest, modified=modified, escaped=escaped, outputs=dump(now, prefix)), elapsed

    def _take(self, returned: object) -> dict[str, torch.Tensor]:
        workload, _, load = self._ready()
        inputs, _, shape = self._set_up()
        file = Path(load.side).name
        in_place = {name: tensor for name, tensor in inputs.tensors() if name in workload.in_place}
        taken = take_outputs(returned, workload.outputs(**shape), in_place, file)
        check_placement(taken, inputs.tensors(), torch.device(load.device), file)
        return taken

    def _warm(self, request: protocol.Warm) -> Answer:
        workload, _, load = self._ready()
        inputs, step, shape = self._set_up()
        peak = 0
        if load.device == "cuda" and request.calls != 0:
            torch.cuda.reset_peak_memory_stats()
            step()
            peak = torch.cuda.max_memory_allocated()
        self._sampler = Sampler(workload, inputs, step, torch.device(load.device), f"{Path(load.side).stem}/step")
        calls, step_ns, sample_ns = self._sampler.warm(request.seed, request.calls, request.seconds)
        metrics: dict[str, ReportedMetric] = {}
        if workload.metrics is not None:
            reported = call_by_name(workload.metrics, {**shape, **inputs.values}, f"{load.workload}: metrics")
            metrics = {name: ReportedMetric(value=m.value, unit=m.unit, better=m.better) for name, m in reported.items()}
        return protocol.Warmed(
            nonce=request.nonce, calls=calls, step_ns=step_ns, sample_ns=sample_ns, peak_memory_bytes=peak, metrics=metrics
        )

    def _time(self, request: protocol.Time) -> Answer:
        sampler = self._sampler
        if sampler is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to time before it was warm; expected warm first")
        picks: list[Call] = []

        def keep(i: int) -> None:
            if i in request.picks:
                now = snapshot(self._take(sampler.returned))
                outputs = dump(now, f"{request.prefix}_{i}")
                picks.append(Call(seed=request.seed + i, digest=self._set_up()[0].digest(), modified=[], escaped=False, outputs=outputs))

        samples = sampler.block(request.seed, request.count, keep)
        notes = ["input files stayed in the page cache: their reads are warm"] if sampler.warm_files else []
        return protocol.Timed(nonce=request.nonce, samples_ns=samples, picks=picks, notes=notes)

    def _ready(self) -> tuple[Workload, Side, protocol.Load]:
        if self._loaded is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to prepare before it had loaded a side; expected load first")
        return self._loaded

    def _set_up(self) -> tuple[Inputs, Step, Shape]:
        if self._prepared is None:
            raise SideFailure(Status.CRASHED, "a worker was asked to call a step before it was prepared; expected prepare first")
        return self._prepared


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _still_changes(taken_at_once: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]) -> bool:
    time.sleep(_LINGER_S)
    return bool(changed(taken_at_once, outputs.items()))
