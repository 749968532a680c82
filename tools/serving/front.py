"""A front of engines for callers in many threads: each gets its own request's tokens, one by one, as they are said."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from common.serving.engines import Fleet

_IDLE_S = 0.1
_GLANCE_S = 0.0005


class EngineDied(Exception):
    """No engine answers any more; the text says which has died."""


@dataclass
class _Open:
    """A request that is being answered: where its tokens go, how many are still due, and whether its caller has left."""

    prompt: list[int]
    due: int
    tokens: queue.SimpleQueue[int | EngineDied] = field(default_factory=queue.SimpleQueue)
    is_left: bool = False


class Front:
    """Hands requests to the engine with the least work and tokens back. One thread talks to the engines, from `with` to its end."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._arrived: queue.SimpleQueue[_Open] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._failure: EngineDied | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="front", daemon=True)

    def __enter__(self) -> Front:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    @property
    def failure(self) -> str:
        """Why no more requests are answered; empty while they are."""
        return str(self._failure or "")

    def answer(self, prompt: Sequence[int], count: int) -> Generator[int, None, None]:
        """The `count` tokens behind a prompt, each as soon as it is said. A caller may leave early: the slot is given back.

        Raises EngineDied.
        """
        request = _Open(list(prompt), count)
        with self._lock:
            if self._failure:
                raise self._failure
            self._arrived.put(request)
        try:
            for _ in range(count):
                token = request.tokens.get()
                if isinstance(token, EngineDied):
                    raise token
                yield token
        finally:
            request.is_left = True

    def _serve(self) -> None:
        requests: dict[int, _Open] = {}
        number = 0
        try:
            while not self._ends.is_set():
                for request in self._new(wait=not requests):
                    requests[number] = request
                    self._fleet.send(self._least_busy(), number, request.prompt)
                    number += 1
                for said in self._fleet.poll(_GLANCE_S) if requests else ():
                    for name, token in zip(said.names, said.tokens, strict=True):
                        self._said(requests, int(str(name)), token)
        except (RuntimeError, OSError) as error:
            self._fail(EngineDied(str(error)), requests)

    def _new(self, *, wait: bool) -> list[_Open]:
        """Requests that came since the last call; if `wait`, the first that comes, or nothing after a while."""
        found = []
        with suppress(queue.Empty):
            if wait:
                found.append(self._arrived.get(timeout=_IDLE_S))
            while True:
                found.append(self._arrived.get_nowait())
        return found

    def _least_busy(self) -> int:
        loads = self._fleet.loads
        return min(range(len(loads)), key=lambda engine: (loads[engine].waiting + loads[engine].running, loads[engine].waiting_tokens))

    def _said(self, requests: dict[int, _Open], name: int, token: int) -> None:
        request = requests[name]
        request.tokens.put(token)
        request.due -= 1
        if not request.due or request.is_left:
            self._fleet.forget(name)
            del requests[name]

    def _fail(self, failure: EngineDied, requests: dict[int, _Open]) -> None:
        with self._lock:  # who asks from now on is told at once
            self._failure = failure
        for request in [*requests.values(), *self._new(wait=False)]:
            request.tokens.put(failure)
