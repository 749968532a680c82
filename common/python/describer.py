"""Loads every selected workload once, before anything runs, so that a broken file or a bad kwarg is an error up front."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from common.python import protocol
from common.python.cuda_launch import Names, check_source
from common.python.directives import read_directives
from common.python.errors import BenchmarkError, SideFailure
from common.python.loader import load_workload
from common.python.protocol import Answer, AnyRequest, ShapeEntries
from common.python.random_inputs import Inputs
from common.python.workload import Shape, ShapeValue, Workload


class Describer:
    """Answers Describe and Probe requests."""

    def answer(self, request: AnyRequest) -> Answer:
        """What the parent must know. Raises BenchmarkError naming the workload file for anything wrong in it."""
        match request:
            case protocol.Probe():
                return protocol.Probed(nonce=request.nonce, torch=torch.__version__, cuda=torch.cuda.is_available())
            case protocol.Describe():
                return self._describe(request)
            case _:
                raise BenchmarkError(f"the describer was asked for {request.kind}; expected describe or probe")

    def close(self) -> None:
        """Nothing to give back."""

    def _describe(self, request: protocol.Describe) -> Answer:
        path = Path(request.workload)
        workload = load_workload(path)
        timed = {name: with_kwargs(shape, request.kwargs, path.name) for name, shape in workload.timed_shapes.items()}
        cpu_at = {} if workload.cpu_at is None else with_kwargs(workload.cpu_at, request.kwargs, path.name)
        for shape in [*workload.check_at, *timed.values(), *([cpu_at] if cpu_at else [])]:
            _try_shape(workload, shape, path.name)
        mismatch = _try_inputs(workload, [Path(side) for side in request.sides.values()], path.name)
        return protocol.Described(
            nonce=request.nonce,
            goal=workload.goal,
            clock=workload.clock,
            cache=workload.cache,
            place=workload.place,
            timed=timed,
            cpu_at=cpu_at,
            check_at=[dict(shape) for shape in workload.check_at],
            mismatch=mismatch,
        )


def _try_inputs(workload: Workload, sides: Sequence[Path], file: str) -> str:
    shape = workload.check_at[0]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 0, torch.device("cpu"), Path(folder))
    for name in (*workload.constants, *workload.in_place):
        if name not in inputs.values:
            raise BenchmarkError(f"{file}: constants or in_place name {name!r}; expected some of the inputs {sorted(inputs.values)}")
    try:
        for side in sides:
            if side.suffix == ".cu":
                check_source(side, Names.of(workload, read_directives(side), inputs.values, shape))
    except SideFailure as failure:
        return failure.reason
    return ""


def _try_shape(workload: Workload, shape: Shape, file: str) -> None:
    outputs = workload.outputs(**shape)
    if not outputs:
        raise BenchmarkError(f"{file}: outputs is empty at {dict(shape)}; expected at least one output")
    for name, spec in outputs.items():
        if spec.elements == 0:
            raise BenchmarkError(f"{file}: output {name} has no elements at {dict(shape)}; expected at least one, or nothing is checked")
    workload.work(**shape)


def with_kwargs(shape: Shape, kwargs: Mapping[str, str], file: str) -> ShapeEntries:
    """`shape` with the entries that `kwargs` names, in the types they had. Raises BenchmarkError for an unknown key or a bad value."""
    changed: ShapeEntries = dict(shape)
    for key, text in kwargs.items():
        if key not in shape:
            raise BenchmarkError(f"--kwargs {key}={text}: {file} has no such shape entry; expected some of {', '.join(sorted(shape))}")
        changed[key] = _converted(shape[key], text, key)
    return changed


def _converted(old: ShapeValue, text: str, key: str) -> ShapeValue:
    try:
        if isinstance(old, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return type(old)(text)
    except (ValueError, KeyError) as error:
        raise BenchmarkError(f"--kwargs {key}={text}: found {text!r}; expected a value of type {type(old).__name__}") from error
