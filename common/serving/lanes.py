"""Two lanes of work on one GPU: streams whose kernels run on SMs of their own, by green contexts. On a CPU work runs as it comes."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

import torch


class Mark:
    """A place in a lane's work."""

    def __init__(self, event: torch.cuda.Event | None) -> None:
        self.event = event

    def is_reached(self) -> bool:
        """Whether all work before it is done."""
        return self.event is None or self.event.query()

    def wait(self) -> None:
        """Have the host wait until it is reached."""
        if self.event is not None:
            self.event.synchronize()


class Lane:
    """Work in order; `with lane:` puts what torch launches into it. Without a stream, that of a CPU, all is done at once."""

    def __init__(self, stream: torch.cuda.Stream | None) -> None:
        self._stream = stream
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        if self._stream is not None:
            self._entered.append(torch.cuda.stream(self._stream))
            self._entered[-1].__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._stream is not None:
            self._entered.pop().__exit__(kind, error, trace)

    def mark(self) -> Mark:
        """The end of the lane's work so far."""
        return Mark(None if self._stream is None else self._stream.record_event())

    def follow(self, mark: Mark) -> None:
        """Have later work wait until `mark` is reached. The host does not wait."""
        if self._stream is not None and mark.event is not None:
            self._stream.wait_event(mark.event)

    def follow_caller(self) -> None:
        """Have later work wait for what the current stream holds now."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())

    def borrow(self, tensor: torch.Tensor) -> torch.Tensor:
        """`tensor`, of another lane, whose memory is not used again before this lane's work on it is done."""
        if self._stream is not None:
            tensor.record_stream(self._stream)
        return tensor


def split_sms(device: torch.device, sms: int) -> tuple[Lane, Lane]:
    """A lane with at least `sms` SMs of `device` and one with the others, as the driver rounds them.

    Raises RuntimeError where the driver has no green contexts, or `cuda.bindings` is not installed.
    """
    if device.type != "cuda":
        return Lane(None), Lane(None)
    torch.cuda.synchronize(device)  # a context must exist
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise RuntimeError("found no module cuda.bindings; expected it, for green contexts (pip install cuda-bindings)") from error
    index = torch.cuda.current_device()
    whole = _checked(driver.cuDeviceGetDevResource(index, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    groups, _, others = _checked(driver.cuDevSmResourceSplitByCount(1, whole, 0, sms))
    few, many = (Lane(_stream(driver, resource, index)) for resource in (groups[0], others))
    return few, many


def _stream(driver: Any, resource: Any, index: int) -> torch.cuda.Stream:
    description = _checked(driver.cuDevResourceGenerateDesc([resource], 1))
    context = _checked(driver.cuGreenCtxCreate(description, index, driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM))
    stream = _checked(driver.cuGreenCtxStreamCreate(context, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
    return torch.cuda.ExternalStream(int(stream), device=torch.device("cuda", index))


def _checked(answer: tuple[Any, ...]) -> Any:
    """What a call of the driver returned behind its status. Raises RuntimeError where that is no success."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(f"the driver answered {status.name}; expected success of a green context's set-up")
    return values[0] if len(values) == 1 else values
