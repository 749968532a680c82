"""Inputs without data: their shapes, types and places, and so their bytes, known before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.inputs import Rand, leaves
from common.python.errors import BenchmarkError
from common.python.pairs.workload import Shape, Spec, Where, Workload
from common.python.processes.messages import DeviceBytes
from common.tensor_files import tensor_shapes

_META = torch.device("meta")
_NEEDS_DATA = (RuntimeError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError, OSError, BenchmarkError)
"""What `inputs` may raise on tensors without data; on real ones, at a small shape, it has been tried."""


class NoData(Rand):
    """Draws that have shapes and dtypes only; `hosted` has the storages of those that would lie in the host's memory."""

    def __init__(self, device: torch.device, folder: Path) -> None:
        super().__init__(0, device, folder)
        self.hosted: set[int] = set()

    def _put(self, shape: tuple[int, ...], dtype: torch.dtype, where: Where, *_: object, **__: object) -> torch.Tensor:
        out = torch.empty(shape, dtype=dtype, device=self._device)
        if where != "device":
            self.hosted.add(_storage(out))
        return out

    def _tensors(self, data: bytes) -> dict[str, torch.Tensor]:
        return {name: torch.empty(shape, dtype=dtype, device=self._device) for name, (shape, dtype) in tensor_shapes(data).items()}

    def file(self, size: int) -> Path:
        """Where a file of `size` bytes would be."""
        return self._folder / f"no_data_{size}.bin"


def device_bytes(workload: Workload, shape: Shape, outputs: Mapping[str, Spec]) -> DeviceBytes | None:
    """What the inputs and outputs of one process take at `shape`, where that is of most ranks; None where `inputs` reads its values."""
    rand = NoData(_META, Path())
    try:
        with _META:  # so that what `inputs` makes beside its draws is not allocated either
            inputs = workload.inputs_of(rand, shape, 0, max(workload.ranks, default=1))
    except _NEEDS_DATA:
        return None
    sizes = {_storage(leaf): leaf.untyped_storage().nbytes() for _, leaf in leaves(inputs) if isinstance(leaf, torch.Tensor)}
    made = {name: spec for name, spec in outputs.items() if name not in inputs}  # the others are inputs that a step changes in place
    of_outputs = {name: torch.Size(spec.shape).numel() * spec.dtype.itemsize for name, spec in made.items()}
    return DeviceBytes(
        side=sum(size for storage, size in sizes.items() if storage not in rand.hosted)
        + sum(of_outputs[name] for name, spec in made.items() if spec.where == "device"),
        referee=sum(sizes.values()) + sum(of_outputs.values()),
    )


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
