"""The process that judges: it makes inputs and reference itself, from the seed, and never imports a side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from common.python import protocol
from common.python.dumps import read_dump
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.loader import load_workload
from common.python.protocol import Answer, AnyRequest
from common.python.random_inputs import Inputs
from common.python.results import OutputError
from common.python.verification import compare, upcast
from common.python.workload import Spec, Workload, call_by_name

_REFERENCES_KEPT = 2


class Referee:
    """Answers Judge requests; keeps the inputs of one shape and the latest references, which both sides share."""

    def __init__(self) -> None:
        self._workloads: dict[str, Workload] = {}
        self._inputs: dict[str, Inputs] = {}
        self._references: dict[str, tuple[str, dict[str, torch.Tensor]]] = {}

    def answer(self, request: AnyRequest) -> Answer:
        """Judge the outputs that `request` names. Raises SideFailure."""
        if not isinstance(request, protocol.Judge):
            raise SideFailure(Status.CRASHED, f"the referee was asked for {request.kind}; expected judge")
        workload = self._workload(request.workload)
        specs = workload.outputs(**request.shape)
        digest, expected = self._reference(workload, request)
        errors: dict[str, OutputError] = {}
        mismatches = []
        for dumped in request.outputs:
            found = read_dump(dumped, specs[dumped.name], torch.device(request.device))
            errors[dumped.name], mismatch = compare(dumped.name, found, expected[dumped.name], workload.tolerance(request.side))
            if mismatch:
                mismatches.append(mismatch)
        if set(errors) != set(specs):
            raise SideFailure(Status.WRONG_RESULT, f"found outputs {sorted(errors)}; expected {sorted(specs)}")
        return protocol.Judged(nonce=request.nonce, digest=digest, outputs=errors, mismatch="; ".join(mismatches))

    def close(self) -> None:
        """Delete the input files."""
        for inputs in self._inputs.values():
            inputs.remove_files()

    def _workload(self, path: str) -> Workload:
        if path not in self._workloads:
            self._workloads[path] = load_workload(Path(path))
        return self._workloads[path]

    def _reference(self, workload: Workload, request: protocol.Judge) -> tuple[str, dict[str, torch.Tensor]]:
        place = f"{request.workload} {sorted(request.shape.items())} {request.prepare_seed}"
        key = f"{place} {request.seed}"
        if key in self._references:
            return self._references[key]
        if place not in self._inputs:
            self.close()
            device = torch.device(request.device)
            self._inputs = {place: Inputs(workload, request.shape, request.prepare_seed, device, Path(request.folder))}
        inputs = self._inputs[place]
        inputs.rewrite(request.seed)
        digest = inputs.digest()
        precise = upcast(inputs.values, getattr(torch, workload.reference_in))
        where = f"{Path(request.workload).name}: reference"
        returned = call_by_name(workload.reference, {**request.shape, **precise}, where)
        while len(self._references) >= _REFERENCES_KEPT:
            del self._references[next(iter(self._references))]
        self._references[key] = (digest, _named(returned, workload.outputs(**request.shape), where))
        return self._references[key]


def _named(returned: Any, specs: dict[str, Spec], where: str) -> dict[str, torch.Tensor]:
    values = (returned,) if isinstance(returned, torch.Tensor) else tuple(returned)
    if len(values) != len(specs):
        raise BenchmarkError(f"{where} returned {len(values)} values; expected {len(specs)}: {', '.join(specs)}")
    for (name, spec), value in zip(specs.items(), values, strict=True):
        if tuple(value.shape) != tuple(spec.shape):
            raise BenchmarkError(f"{where} returned {name} of shape {tuple(value.shape)}; expected {tuple(spec.shape)}")
    return dict(zip(specs, values, strict=True))
