"""Windows of `transfer` over NIXL (github.com/ai-dynamo/nixl), which chooses RDMA, NVLink or shared memory through UCX.

NIXL takes addresses from the host, so a write waits for the GPU twice: for the indices and for the pages that it sends.
"""

from __future__ import annotations

import importlib
import time
import uuid
from dataclasses import dataclass
from typing import Any

import torch

_GLANCE_S = 2e-6
_WAIT_S = 60.0


@dataclass(frozen=True)
class NixlHandle:
    """What another process needs to write into a window: its agent, and where its pages lie."""

    agent: bytes
    address: int
    device: int
    layers: int
    pages: int


class NixlWindow:
    """Memory that a peer writes pages into: `pages` [layers, pages, elements]. What has landed is counted by NIXL's notifications.

    Raises RuntimeError where the package is not installed.
    """

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> None:
        self.pages = torch.zeros(shape, dtype=dtype, device=device)
        api = _api()
        self.agent = api.nixl_agent(uuid.uuid4().hex, api.nixl_agent_config(enable_prog_thread=False, backends=["UCX"]))
        self.agent.register_memory(self.pages)
        self._landed = 0
        layers, pages, _ = shape
        self.handle = NixlHandle(self.agent.get_agent_metadata(), self.pages.data_ptr(), max(0, self.pages.get_device()), layers, pages)

    def open(self, handle: NixlHandle) -> NixlPeer:
        """The window of a peer, for writes by this process."""
        return NixlPeer(self.agent, self.agent.add_remote_agent(handle.agent), handle, 0)

    def wait(self, count: int) -> None:
        """Have the caller wait until at least `count` pages have landed since the window was made. Raises TimeoutError after 60 s."""
        deadline = time.monotonic() + _WAIT_S
        while self._landed < count:
            for notes in self.agent.get_new_notifs().values():
                self._landed += sum(int(note) for note in notes)
            if time.monotonic() > deadline:
                raise TimeoutError(f"found {self._landed} pages after {_WAIT_S:g} s; expected {count}")
            time.sleep(_GLANCE_S)


class NixlPeer:
    """A peer's window, from layer `first` on."""

    def __init__(self, agent: Any, name: str, handle: NixlHandle, first: int) -> None:
        self._agent, self._name, self._handle, self._first = agent, name, handle, first
        self._registered: set[int] = set()

    def part(self, first: int, layers: int) -> NixlPeer:
        """The window from layer `first` on. Raises ValueError where it has no `layers` there."""
        if not 0 <= self._first + first <= self._first + first + layers <= self._handle.layers:
            raise ValueError(f"found layers {first} to {first + layers}; expected some of {self._handle.layers - self._first}")
        return NixlPeer(self._agent, self._name, self._handle, self._first + first)

    def write(self, source: torch.Tensor, pages: torch.Tensor, places: torch.Tensor) -> None:
        """Pages `pages` of `source` [layers, pages, elements] into `places` of this window. Returns when they have left."""
        if source.data_ptr() not in self._registered:
            self._agent.register_memory(source)
            self._registered.add(source.data_ptr())
        size = source[0, 0].nbytes
        layers = torch.arange(len(source))[:, None]
        mine = source.data_ptr() + size * (layers * source.shape[1] + pages.cpu()).flatten()
        theirs = self._handle.address + size * ((layers + self._first) * self._handle.pages + places.cpu()).flatten()
        if source.device.type == "cuda":
            torch.cuda.current_stream(source.device).synchronize()
        kind = "VRAM" if source.device.type == "cuda" else "DRAM"
        local, remote = (
            self._agent.get_xfer_descs([(address, size, device) for address in addresses.tolist()], kind)
            for addresses, device in ((mine, max(0, source.get_device())), (theirs, self._handle.device))
        )
        moving = self._agent.initialize_xfer("WRITE", local, remote, self._name, str(len(pages)).encode())
        state = self._agent.transfer(moving)
        while state == "PROC":
            state = self._agent.check_xfer_state(moving)
        self._agent.release_xfer_handle(moving)
        if state != "DONE":
            raise RuntimeError(f"NIXL ended a write of {len(pages)} pages with {state}; expected DONE")


def _api() -> Any:
    """NIXL's Python module, by the name of any of its packages."""
    for name in ("nixl", "nixl_cu13", "nixl_cu12"):
        try:
            return importlib.import_module(f"{name}._api")
        except ImportError:
            continue
    raise RuntimeError("found no module nixl; expected it for backend=nixl (pip install nixl)")
