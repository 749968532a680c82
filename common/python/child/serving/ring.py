"""The shared memory between a client and a side: prompts one way, tokens the other, a flag a token.

Whoever writes puts the flag, or the count, behind what it is about; whoever reads looks at that first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.python.pairs.traces import Planned

_from_file = torch.from_file  # captured before any side is imported
_HEADER = ("ready", "count", "longest", "slots", "probes", "arrived", "started", "reserved", "finished")
_ALIGNMENT = 64  # bytes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Sizes:
    """Requests of a trace, tokens of its longest prompt, tokens of all its answers, and logits that are copied of a row."""

    count: int
    longest: int
    slots: int
    probes: int

    @classmethod
    def of(cls, trace: Sequence[Planned], probes: int) -> Sizes:
        """Those that a trace needs."""
        return cls(len(trace), max(len(planned.prompt) for planned in trace), sum(planned.output_tokens for planned in trace), probes)

    @property
    def fields(self) -> dict[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Every array behind the header: its type and shape.

        By request: `lengths` of prompts, `most` that a side is told, `wanted` tokens, `prompts`. By slot, which is a token: its `owners`
        request, `tokens`, the `probed` logits of `columns`, and its `flags`.
        """
        return {
            "lengths": (np.int32, (self.count,)),
            "most": (np.int32, (self.count,)),
            "wanted": (np.int32, (self.count,)),
            "prompts": (np.int32, (self.count, self.longest)),
            "columns": (np.int64, (self.probes,)),
            "owners": (np.int32, (self.slots,)),
            "tokens": (np.int64, (self.slots,)),
            "probed": (np.float32, (self.slots, self.probes)),
            "flags": (np.int32, (self.slots,)),
        }


class Ring:
    """The arrays of a file of shared memory, over `data`, its bytes. `places` has each array's first byte and its size in bytes."""

    def __init__(self, data: torch.Tensor, sizes: Sizes) -> None:
        self.data = data
        self.sizes = sizes
        self.header: Array = data[: _header_bytes()].numpy().view(np.int64)
        self.places: dict[str, tuple[int, int]] = {}
        self.arrays: dict[str, Array] = {}
        start = _header_bytes()
        for name, (dtype, shape) in sizes.fields.items():
            size = math.prod(shape) * np.dtype(dtype).itemsize
            self.places[name] = (start, size)
            self.arrays[name] = data[start : start + size].numpy().view(dtype).reshape(shape)
            start += _aligned(size)

    @classmethod
    def create(cls, path: Path, sizes: Sizes) -> Ring:
        """A new one at `path`, all zeros; it is not ready yet."""
        size = _header_bytes() + sum(_aligned(math.prod(shape) * np.dtype(dtype).itemsize) for dtype, shape in sizes.fields.values())
        ring = cls(_from_file(str(path), shared=True, size=size, dtype=torch.uint8), sizes)
        for name, value in vars(sizes).items():
            ring.put(name, value)
        return ring

    @classmethod
    def open(cls, path: Path) -> Ring | None:
        """The one at `path`; None while there is none that is ready."""
        size = path.stat().st_size if path.is_file() else 0
        if size < _header_bytes():
            return None
        data = _from_file(str(path), shared=True, size=size, dtype=torch.uint8)
        header = dict(zip(_HEADER, data[: _header_bytes()].numpy().view(np.int64).tolist(), strict=False))
        return cls(data, Sizes(**{name: header[name] for name in Sizes.__dataclass_fields__})) if header["ready"] else None

    def get(self, name: str) -> int:
        """A number of the header."""
        return int(self.header[_HEADER.index(name)])

    def put(self, name: str, value: int) -> None:
        """Write a number of the header."""
        self.header[_HEADER.index(name)] = value

    def tensor(self, name: str) -> torch.Tensor:
        """An array as a tensor over the same memory."""
        start, size = self.places[name]
        dtype, shape = self.sizes.fields[name]
        return self.data[start : start + size].view(_TORCH[dtype]).view(shape)


_TORCH = {np.int32: torch.int32, np.int64: torch.int64, np.float32: torch.float32}


def _header_bytes() -> int:
    return _aligned(8 * len(_HEADER))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
