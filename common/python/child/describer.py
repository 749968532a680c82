"""Loads every selected workload once, before anything runs, so that a broken file or a bad kwarg is an error up front."""

from __future__ import annotations

import inspect
import math
import tempfile
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from common.python.child.reported import metrics_of
from common.python.child.sides.cuda import Names, check_source
from common.python.child.sides.inputs import Inputs, leaves, require_named, require_repeatable, tensor_digest
from common.python.child.sides.loader import load_workload
from common.python.child.sides.no_data import device_bytes
from common.python.errors import BenchmarkError, SideFailure
from common.python.machine.ceilings import require_work
from common.python.machine.needs import unmet_packages
from common.python.pairs.directives import read_directives
from common.python.pairs.goals import GOALS, NEITHER
from common.python.pairs.layout import place_of
from common.python.pairs.workload import PEER_NAMES, RANK_NAMES, Shape, ShapeValue, Spec, Where, Workload, call_by_name
from common.python.processes import messages
from common.python.processes.messages import Answer, AnyRequest, ShapeEntries

_KINDS = {bool: "true or false", int: "an integer", float: "a finite number", str: "a word"}


class Describer:
    """Answers Describe and Probe requests."""

    def answer(self, request: AnyRequest) -> Answer:
        """What the parent must know. Raises BenchmarkError naming the workload file for anything wrong in it."""
        match request:
            case messages.Probe():
                return messages.Probed(nonce=request.nonce, torch=torch.__version__, cuda=torch.cuda.is_available())
            case messages.Describe():
                return self._describe(request)
            case _:
                raise BenchmarkError(f"the describer was asked for {request.kind}; expected describe or probe")

    def close(self) -> None:
        """Nothing to give back."""

    def _describe(self, request: messages.Describe) -> Answer:
        path = Path(request.workload)
        workload = load_workload(path)
        timed = distinct({name: with_kwargs(shape, request.kwargs, path.name) for name, shape in workload.timed_shapes.items()})
        cpu_at = {} if workload.cpu_at is None else with_kwargs(workload.cpu_at, request.kwargs, path.name)
        on_cpu = [cpu_at] if cpu_at else []
        # Of shapes that are wrong, one that would run is told first: they are weighed where that is on a GPU.
        for shape in [*workload.check_at, *([*timed.values(), *on_cpu] if request.weigh else [*on_cpu, *timed.values()])]:
            _try_shape(workload, shape, path.name)
        # Without a package that `inputs` may ask for nothing can be tried: the row is skipped, and says which.
        lacking = bool(unmet_packages(read_directives(path).needs))
        inputs = None if lacking else _try_inputs(workload, path.name)
        return messages.Described(
            nonce=request.nonce,
            goal=workload.goal,
            clock="host" if workload.serving else workload.clock,  # that of the clients
            cache="hot" if workload.serving else workload.cache,
            place=workload.place,
            timed=timed,
            cpu_at=cpu_at,
            check_at=[dict(shape) for shape in workload.check_at],
            work={count: {name: workload.work_of(shape, count) for name, shape in timed.items()} for count in workload.ranks or (1,)},
            cpu_work={count: workload.work_of(cpu_at, count) if cpu_at else {} for count in workload.ranks or (1,)},
            serving=workload.serving is not None,
            assets=inputs.assets if inputs else {},
            mismatch=_mismatch(workload, inputs, [Path(side) for side in request.sides.values()]) if inputs else "",
            places=_places(workload, inputs, path.name) if inputs else {},
            ranks=list(workload.ranks),
            device_bytes=_weighed(workload, timed) if request.weigh and workload.place == "device" and not lacking else {},
        )


def _weighed(workload: Workload, timed: Mapping[str, Shape]) -> dict[str, messages.DeviceBytes]:
    found = {name: device_bytes(workload, shape, {} if workload.serving else _outputs(workload, shape)) for name, shape in timed.items()}
    return {name: weighed for name, weighed in found.items() if weighed}


def _try_inputs(workload: Workload, file: str) -> Inputs:
    _try_shards(workload, file)
    shape = workload.check_at[0]

    def again() -> Inputs:
        with tempfile.TemporaryDirectory() as folder:
            return Inputs(workload, shape, 0, torch.device("cpu"), Path(folder), _first_place(workload))

    inputs = again()
    if not isinstance(inputs.values, dict):
        raise BenchmarkError(f"{file}: inputs returned a {type(inputs.values).__name__}; expected a dict of names to values")
    if both := sorted(inputs.values.keys() & shape.keys()):
        raise BenchmarkError(f"{file}: {both[0]!r} is an input and a shape entry; expected a name to mean one thing")
    try:
        require_named(workload, inputs)
        require_repeatable(workload, inputs, again)
    except BenchmarkError as error:
        raise BenchmarkError(f"{file}: {error}") from error
    for name, leaf in leaves(inputs.values):
        if workload.evolves and workload.may_change(name) and not isinstance(leaf, torch.Tensor):
            raise BenchmarkError(f"{file}: {name} is state and a {type(leaf).__name__}; expected tensors, which can be compared")
    if workload.serving is not None:
        _require_constants(workload, inputs, file)
    if workload.evolves and not inputs.outputs() and not any(tensor.is_floating_point() for tensor in inputs.state().values()):
        raise BenchmarkError(
            f"{file}: outputs are empty and no state is floating-point; expected one that is, which poison can be told from"
        )
    if workload.reference_rows is not None and "rows" in inputs.values.keys() | shape.keys():
        raise BenchmarkError(f"{file}: 'rows' is what reference_rows is given, and an input or a shape entry; expected one meaning")
    of_rank = place_of(*_first_place(workload)) if workload.ranks else {}
    _require_metric(workload, {**of_rank, **shape, **inputs.values}, file)
    return inputs


def _mismatch(workload: Workload, inputs: Inputs, sides: Sequence[Path]) -> str:
    """What is wrong with the arguments of the first .cu side that does not fit its workload, or nothing."""
    try:
        for side in sides:
            if side.suffix == ".cu":
                names = dict(zip(RANK_NAMES, _first_place(workload), strict=True)) if workload.ranks else {}
                check_source(side, Names.of(workload, read_directives(side), inputs.values, {**workload.check_at[0], **names}))
    except SideFailure as failure:
        return failure.reason
    return ""


def _first_place(workload: Workload) -> tuple[int, int]:
    """Rank 0 of the fewest processes that a side runs in."""
    return 0, min(workload.ranks, default=1)


def _outputs(workload: Workload, shape: Shape) -> dict[str, Spec]:
    with tempfile.TemporaryDirectory() as folder:
        place = {} if not workload.ranks else place_of(*_first_place(workload))
        if "shards" in inspect.signature(workload.outputs).parameters and workload.ranks:
            place["shards"] = Inputs(workload, shape, 0, torch.device("cpu"), Path(folder), _first_place(workload)).shards(0)
        return workload.outputs_of(shape, place)


def _try_shards(workload: Workload, file: str) -> None:
    """Raise BenchmarkError unless two ranks have inputs of their own, and names that functions ask for mean one thing."""
    if not workload.ranks:
        return
    shape, cpu = workload.check_at[0], torch.device("cpu")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [Inputs(workload, shape, 0, cpu, Path(folder), (rank, min(workload.ranks))) for rank in (0, 1)]
    for name in (*RANK_NAMES, *PEER_NAMES):
        if name in ranks[0].values:
            raise BenchmarkError(f"{file}: an input is called {name!r}, and ranks={workload.ranks}; expected another name")
    digests = [[(name, tensor_digest(tensor)) for name, tensor in inputs.tensors()] for inputs in ranks]
    if digests[0] == digests[1]:
        raise BenchmarkError(
            f"{file}: inputs are the same tensors for rank 0 and rank 1; expected shards, as rand.of_rank(rank).normal(...) draws them"
        )


def _require_constants(workload: Workload, inputs: Inputs, file: str) -> None:
    for name, _ in inputs.tensors():
        if name.split(".")[0] not in workload.constants:
            expected = "expected all tensors of a serving workload among them: what changes is the trace"
            raise BenchmarkError(f"{file}: {name} is a tensor and not among the constants; {expected}")


def _require_metric(workload: Workload, available: Mapping[str, Any], file: str) -> None:
    """Raise BenchmarkError for a goal that neither the harness measures nor `metrics` returns, or of which no way is better."""
    if workload.goal in GOALS or workload.metrics is None or workload.serving is not None:
        return
    found = metrics_of(call_by_name(workload.metrics, available, f"{file}: metrics"), f"{file}: metrics")
    if workload.goal not in found:
        raise BenchmarkError(f"{file}: goal={workload.goal!r} and metrics return {', '.join(found) or 'nothing'}; expected the goal there")
    if found[workload.goal].better == NEITHER:
        raise BenchmarkError(f"{file}: goal={workload.goal!r}, of which neither way is better; expected a figure of which one is")


def _places(workload: Workload, inputs: Inputs, file: str) -> dict[str, Where]:
    """The inputs and outputs that lie in the host's memory. Raises BenchmarkError where that makes no sense."""
    outputs = {name: spec.where for name, spec in _outputs(workload, workload.check_at[0]).items()}
    for name in inputs.values.keys() & outputs.keys():  # an input that a step changes in place
        if outputs[name] != (of_input := inputs.places.get(name, "device")):
            found = f"output {name} has where={outputs[name]!r}, and the input of that name {of_input!r}"
            raise BenchmarkError(f"{file}: {found}; expected the same")
    places = {**inputs.places, **{name: where for name, where in outputs.items() if where != "device"}}
    if workload.place == "host" and (pinned := [name for name, where in places.items() if where == "pinned"]):
        raise BenchmarkError(f"{file}: {pinned[0]} has where='pinned' and place='host'; expected place='device', for a GPU that copies it")
    return places


def _try_shape(workload: Workload, shape: Shape, file: str) -> None:
    where = f"at {dict(shape)}"
    if workload.serving is not None:
        try:
            workload.serving.traffic_at(shape)
        except BenchmarkError as error:
            raise BenchmarkError(f"{file}: {error}, {where}") from error
        return
    outputs: Any = _outputs(workload, shape)  # what a file states is typed by nobody
    if not isinstance(outputs, dict) or not all(isinstance(spec, Spec) for spec in outputs.values()):
        raise BenchmarkError(f"{file}: outputs returned {outputs!r} {where}; expected a dict of names to Spec")
    if not outputs and not workload.evolves:
        raise BenchmarkError(f"{file}: outputs are empty {where}; expected at least one, or state='evolves', whose result is the state")
    for name, spec in outputs.items():
        are_extents = isinstance(spec.shape, tuple) and all(isinstance(extent, Integral) for extent in spec.shape)
        if not are_extents or not isinstance(spec.dtype, torch.dtype):
            raise BenchmarkError(f"{file}: output {name} is {spec!r} {where}; expected a Spec of a tuple of extents and a torch dtype")
        if any(extent < 1 for extent in spec.shape):
            raise BenchmarkError(f"{file}: output {name} has shape {spec.shape} {where}; expected no extent below 1, or nothing is checked")
    rows = {name: spec.shape[:1] for name, spec in outputs.items()}
    if workload.reference_rows is not None and (len(set(rows.values())) > 1 or () in rows.values()):
        found = ", ".join(f"{name} of shape {spec.shape}" for name, spec in outputs.items())
        raise BenchmarkError(f"{file}: found reference_rows and outputs {found} {where}; expected all to have as many rows")
    try:
        for count in workload.ranks or (1,):
            require_work(workload.work_of(shape, count), f" {where}")
    except BenchmarkError as error:
        raise BenchmarkError(f"{file}: {error}") from error


def distinct(shapes: Mapping[str, ShapeEntries]) -> dict[str, ShapeEntries]:
    """Each of `shapes` once, by its first name: several that `--kwargs` made equal would be timed as often."""
    found: dict[str, ShapeEntries] = {}
    for name, shape in shapes.items():
        if shape not in found.values():
            found[name] = shape
    return found


def with_kwargs(shape: Shape, kwargs: Mapping[str, str], file: str) -> ShapeEntries:
    """`shape` with the entries that `kwargs` names, in the types they had. Raises BenchmarkError for an unknown key or a bad value."""
    changed: ShapeEntries = dict(shape)
    for key, text in kwargs.items():
        if key not in shape:
            raise BenchmarkError(f"--kwargs {key}={text}: {file} has no such shape entry; expected some of {', '.join(sorted(shape))}")
        try:
            changed[key] = _converted(shape[key], text)
        except (ValueError, KeyError) as error:
            kind = _KINDS[type(shape[key])]
            raise BenchmarkError(f"--kwargs {key}={text}: found {text!r}; expected {kind}, which {key} is in {file}") from error
    return changed


def _converted(old: ShapeValue, text: str) -> ShapeValue:
    if isinstance(old, bool):
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    if isinstance(old, float) and not math.isfinite(float(text)):
        raise ValueError(text)
    return type(old)(text)
