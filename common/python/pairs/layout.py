"""Which of a side's processes this one is, and where it stands among them: a device mesh's coordinates, without its communicators."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.python.errors import BenchmarkError


@dataclass(frozen=True)
class Layout:
    """Rank `rank` in a grid of named dimensions, the last varying fastest: what torch's DeviceMesh of that shape says of it."""

    rank: int
    dims: Mapping[str, int]

    @property
    def mesh_dim_names(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks there are along each dimension."""
        return tuple(self.dims.values())

    def size(self, dim: str | int | None = None) -> int:
        """How many ranks there are along `dim`; without one, in all."""
        return math.prod(self.shape) if dim is None else self.shape[self._place(dim)]

    def get_coordinate(self) -> tuple[int, ...]:
        """This rank's place along each dimension."""
        places, left = [], self.rank
        for extent in reversed(self.shape):
            left, place = divmod(left, extent)
            places.append(place)
        return tuple(reversed(places))

    def get_local_rank(self, dim: str | int) -> int:
        """This rank's place along `dim`."""
        return self.get_coordinate()[self._place(dim)]

    def _place(self, dim: str | int) -> int:
        if dim in self.mesh_dim_names:
            return self.mesh_dim_names.index(str(dim))
        if isinstance(dim, int) and dim < len(self.shape):
            return dim
        raise BenchmarkError(f"a mesh of {dict(self.dims)} was asked for dimension {dim!r}; expected one of {', '.join(self.dims)}")


def layout(rank: int, ranks: int, **dims: int) -> Layout:
    """Where rank `rank` of `ranks` stands in a grid of `dims`. Raises BenchmarkError if the grid has not a place for each."""
    require_grid(ranks, dims)
    return Layout(rank, dims)


def require_grid(ranks: int, dims: Mapping[str, int]) -> None:
    """Raise BenchmarkError unless a grid of `dims` has as many places as there are `ranks`."""
    if math.prod(dims.values()) != ranks or not dims:
        asked = ", ".join(f"{name}={extent}" for name, extent in dims.items())
        raise BenchmarkError(f"mesh({asked}): found {math.prod(dims.values())} places; expected {ranks}, one a rank")


def place_of(rank: int, ranks: int) -> dict[str, Any]:
    """What a workload's functions may ask for of rank `rank` of `ranks`, by name; `mesh` is a function of named extents."""
    return {"rank": rank, "ranks": ranks, "mesh": functools.partial(layout, rank, ranks)}
