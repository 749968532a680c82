"""An NVML whose GPUs answer what a test tells them to, and raise for everything else, as drivers do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml


@dataclass
class FakeGpu:
    """`answers` maps a query, less its `nvmlDeviceGet`, to its answer or to a function of the query's arguments."""

    uuid: str = "GPU-11111111-aaaa"
    answers: dict[str, Any] = field(default_factory=dict)

    def answer(self, query: str, arguments: tuple[Any, ...]) -> Any:
        known = {
            "UUID": self.uuid,
            "Name": "NVIDIA Test",
            "CudaComputeCapability": (9, 0),
            "MemoryInfo": SimpleNamespace(total=80 << 30),
            **self.answers,
        }
        if query not in known:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return known[query](*arguments) if callable(known[query]) else known[query]


class FakeNvml:
    """Stands in for the module pynvml; without GPUs it has no driver. `sessions` counts the open ones, `calls` all queries."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *gpus: FakeGpu) -> None:
        self.gpus = gpus
        self.sessions = 0
        self.calls = 0
        self.threads: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            return getattr(pynvml, name)

        def query(handle: FakeGpu, *arguments: Any) -> Any:
            self.calls += 1
            self.threads.add(threading.current_thread().name)
            return handle.answer(name.removeprefix("nvmlDeviceGet"), arguments)

        return query

    def nvmlInit(self) -> None:
        if not self.gpus:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.sessions += 1

    def nvmlShutdown(self) -> None:
        self.sessions -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return gpu
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
