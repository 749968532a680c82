"""The inputs of any rank, for what one rank's answer depends on beside its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.python.errors import BenchmarkError

PEERS_ALIVE = 2
"""Other ranks' inputs that are kept: with those of all ranks at once a device's memory would be full."""


class Shards:
    """`shards(rank)` are the inputs of that rank, `own` those of rank `rank` of `ranks`; `make` makes a peer's.

    Of peers two are alive: what was returned for one asked for before those is emptied.
    """

    def __init__(self, rank: int, ranks: int, own: dict[str, Any], make: Callable[[int], dict[str, Any]]) -> None:
        self._rank = rank
        self._ranks = ranks
        self._own = own
        self._make = make
        self._peers: dict[int, dict[str, Any]] = {}

    def __call__(self, rank: int) -> dict[str, Any]:
        """The inputs of `rank`, by name. Raises BenchmarkError if there is no such rank."""
        if rank not in range(self._ranks):
            raise BenchmarkError(f"shards({rank}): found no such rank; expected one from 0 to {self._ranks - 1}")
        if rank == self._rank:
            return self._own
        if rank not in self._peers:
            while len(self._peers) >= PEERS_ALIVE:
                self._peers.pop(next(iter(self._peers))).clear()
            self._peers[rank] = self._make(rank)
        return self._peers[rank]
