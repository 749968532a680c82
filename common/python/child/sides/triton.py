"""What a Triton side launches and compiles to, found without a GPU: one step on tensors without data, with a stand-in for the driver.

Triton asks its driver for the architecture, for a place to load machine code, and for launches. The stand-in answers for any
GPU, keeps the code in a file and takes note of the launch, so that a claim is about the kernels, constants and grids of the
very step that would be timed. An autotuner gets no timings and takes its first configuration.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import sys
import sysconfig
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.loader import load_side, load_workload, look_back, look_here
from common.python.child.sides.no_data import NoData
from common.python.processes import messages
from common.python.processes.messages import Launch, Observed

_WARP = 32
_SHARED_BYTES = 227 << 10  # that a block may ask for, on 9.0 and 10.0
_SMS = {(9, 0): 132, (10, 0): 148}  # H100 and H200; B200
_NO_CUDA = "not linked with support for cuda"
_INTERPRETER = "triton.runtime.interpreter"
_ADDRESS = 1 << 20  # where every storage begins: aligned as the allocator would


class SeenOnGpus(Exception):
    """Why nothing can be told of a step where no GPU runs it."""


class StandInDriver:
    """A Triton driver of a GPU of `capability` that is not there; `launches` fills while `recording`."""

    def __init__(self, capability: tuple[int, int], prefix: str) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", capability[0] * 10 + capability[1], _WARP)
        self._properties = {"max_shared_mem": _SHARED_BYTES, "multiprocessor_count": _SMS[capability], "warpSize": _WARP}
        self._prefix = prefix
        self._loaded = 0
        self.recording = False
        self.launches: list[Launch] = []
        self.cubins: list[str] = []
        self.utils = SimpleNamespace(load_binary=self._load_binary, get_device_properties=lambda _device: self._properties)

    def get_current_target(self) -> Any:
        """The architecture to compile for."""
        return self._target

    def get_current_device(self) -> int:
        """The first."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Where tensors would be."""
        return torch.device("cuda", 0)

    def get_current_stream(self, _device: int) -> int:
        """The default one."""
        return 0

    def get_device_interface(self) -> Any:
        """What a side would time its own steps by, which no GPU runs here. Raises SeenOnGpus."""
        raise SeenOnGpus("it times its own steps, and what it then takes is seen on GPUs")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """A benchmark function for Triton's autotuner that reports 1.0 for every configuration, because no GPU runs here."""
        return lambda *_arguments, quantiles, **_options: [1.0] * len(quantiles)

    def launcher_cls(self, _source: object, metadata: Any) -> Callable[..., None]:
        """What launches a kernel that was compiled: here it takes note."""

        def launch(x: int, y: int, z: int, _stream: int, cubin: str, *_rest: object) -> None:
            if not self.recording:
                return
            if cubin not in self.cubins:
                self.cubins.append(cubin)
            self.launches.append(
                Launch(
                    kernel=metadata.name,
                    call=self._next_call,
                    in_graph=False,
                    grid=(x, y, z),
                    block=(metadata.num_warps * _WARP, 1, 1),
                    cluster=metadata.num_ctas,
                    shared_bytes=metadata.shared,
                    registers=None,
                    occupancy_percent=None,
                )
            )

        return launch

    def launch_graph(self, launches: Sequence[Launch], cubins: Sequence[str]) -> None:
        """Take note of one launch of a graph, of whose kernels note was taken when it was captured."""
        if self.recording:
            call = self._next_call
            self.launches += [launch.model_copy(update={"call": call, "in_graph": True}) for launch in launches]
            self.cubins += [cubin for cubin in cubins if cubin not in self.cubins]

    @property
    def _next_call(self) -> int:
        return self.launches[-1].call + 1 if self.launches else 0

    def _load_binary(self, _name: str, binary: bytes, _shared: int, _device: int) -> tuple[int, str, int, int, int]:
        path = Path(f"{self._prefix}{self._loaded}.cubin")
        path.write_bytes(binary)
        self._loaded += 1
        return self._loaded, str(path), 0, 0, 1024  # module, function, registers, spills, threads


class _Operations(TorchDispatchMode):
    """Names of PyTorch's operations that would run kernels of their own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: object, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        if not function.is_view and "empty" not in function.__name__ and function.namespace != "prim":
            self.names.append(str(function.overloadpacket))
        return function(*args, **(kwargs or {}))


class StandInGraph:
    """A CUDA graph of what a side launches while it is captured; a replay counts as one launch of all of that."""

    def __init__(self, driver: StandInDriver, operations: _Operations) -> None:
        self._driver = driver
        self._operations = operations
        self._launches: list[Launch] = []
        self._cubins: list[str] = []
        self._names: list[str] = []

    @contextmanager
    def capture(self) -> Iterator[None]:
        """What is launched within belongs to the graph, and is no launch of its own."""
        driver, inside = self._driver, _Operations()
        then = driver.recording, driver.launches, driver.cubins
        driver.recording, driver.launches, driver.cubins = True, self._launches, self._cubins
        try:
            with inside:
                yield
        finally:
            driver.recording, driver.launches, driver.cubins = then
        self._names += inside.names

    def replay(self) -> None:
        """Launch the graph."""
        self._driver.launch_graph(self._launches, self._cubins)
        if self._driver.recording:
            self._operations.names += self._names


def compile_ahead(request: messages.Ahead) -> Observed:
    """One step of the side, as if on a GPU; Triton stays without its own driver. Lets through what the side and the compiler raise.

    Nothing is told of a step of several ranks, which waits for the others, of one that a side times to choose among several, and of one
    that torch.compile would have to compile for a GPU that is not there.
    """
    harness = set(sys.modules)
    if load_workload(Path(request.workload)).ranks:
        return _untold(request, "it runs in several ranks, whose steps are seen on GPUs")
    try:
        return _observe_somehow(request, harness)
    except SeenOnGpus as reason:
        return _untold(request, str(reason))
    except RuntimeError as error:
        if type(error).__name__ != "BackendCompilerFailed":  # of torch._dynamo, which only a side that needs it imports
            raise
        return _untold(request, "torch.compile makes its kernels, which are seen on GPUs")


def _observe_somehow(request: messages.Ahead, harness: Collection[str]) -> Observed:
    try:
        return _observe(request, harness, torch.device("cuda", 0), "")
    except RuntimeError as error:
        if _NO_CUDA not in str(error):
            raise
    # A side that slices its tensors cannot stand on a GPU that PyTorch was not built for; what it does on a CPU may be less.
    return _observe(
        request, harness, torch.device("cpu"), "this PyTorch has no CUDA, so its step was tried on a CPU; a GPU may see it launch more"
    )


def _untold(request: messages.Ahead, why: str) -> Observed:
    return Observed(nonce=request.nonce, launches=[], spans=[], cubins=[], missed=why, imported=_imported_files())


def _observe(request: messages.Ahead, harness: Collection[str], device: torch.device, missed: str) -> Observed:
    import triton

    driver = StandInDriver(request.capability, request.prefix)
    triton.runtime.driver.set_active(driver)
    operations = _Operations()
    with _stand_in_for_cuda(request.capability, lambda: StandInGraph(driver, operations)), FakeTensorMode(allow_non_fake_inputs=True):
        if request.past is not None:
            look_here(request.past)  # where this is the second try
        workload = load_workload(Path(request.workload))
        if request.past is not None and Path(request.side).is_relative_to(request.past.then):
            look_back(request.past, harness)
        side = load_side(Path(request.side), workload, None)
        rand = NoData(device, Path(request.prefix).parent)
        step = side.prepare(workload.inputs_of(rand, request.shape, 0, 1), request.shape)
        step()  # what a first call sets up is not of the step
        driver.recording = True
        with operations:
            step()
    if operations.names:
        missed = f"step also calls {', '.join(dict.fromkeys(operations.names))}, whose kernels are seen on a GPU"
    return Observed(
        nonce=request.nonce, launches=driver.launches, spans=[], cubins=driver.cubins, missed=missed, imported=_imported_files()
    )


def _imported_files() -> list[str]:
    """Where this process's modules come from that are neither Python's own nor of an installed package."""
    files = {str(vars(module).get("__file__")) for module in list(sys.modules.values()) if hasattr(module, "__dict__")}
    installed = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return sorted(file for file in files if Path(file).is_absolute() and not file.startswith(installed) and "-packages/" not in file)


def _with_gradient(tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
    """Autograd asks PyTorch for the GPU of a tensor, and a PyTorch that knows none ends the process."""
    if tensor.device.type == "cuda" and torch.version.cuda is None:
        raise RuntimeError(_NO_CUDA)
    return torch.Tensor.requires_grad_(tensor, requires_grad)


@contextmanager
def _stand_in_for_cuda(capability: tuple[int, int], graph: Callable[[], StandInGraph]) -> Iterator[None]:
    """Answers of torch.cuda that a `prepare` may ask for, its graphs, and addresses of tensors that have none."""
    major, minor = capability
    properties = SimpleNamespace(
        major=major,
        minor=minor,
        multi_processor_count=_SMS[capability],
        shared_memory_per_block_optin=_SHARED_BYTES,
        warp_size=_WARP,
    )
    answers: dict[str, Any] = {
        "get_device_properties": lambda *_device: properties,
        "get_device_capability": lambda *_device: capability,
        "current_device": lambda: 0,
        "synchronize": lambda *_device: None,
        "CUDAGraph": lambda *_arguments, **_options: graph(),
        "graph": lambda captured, *_arguments, **_options: captured.capture(),
    }
    with (
        mock.patch.multiple(torch.cuda, **answers),
        mock.patch.object(FakeTensor, "data_ptr", lambda tensor: _ADDRESS + tensor.storage_offset() * tensor.itemsize),
        mock.patch.object(FakeTensor, "requires_grad_", _with_gradient),
    ):
        yield


@functools.cache
def start_triton() -> float:
    """Import Triton and compute its cache key, for which Triton reads all of its own 400 MB; return the seconds that took.

    The result is cached. A forked child inherits it, so a call in the child takes no time and returns the parent's seconds.
    If Triton cannot be imported, nothing is done: a side that needs Triton fails with a clearer message.
    """
    begin = time.perf_counter()
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()
        gc.freeze()
    return time.perf_counter() - begin


@functools.cache
def mend_interpreter() -> None:
    """Have Triton's interpreter multiply bf16 as numbers, round floats to nearest as its compiler does, and pass by waits for a kernel.

    Triton 3.6 keeps bf16 as 16-bit integers, which its product takes for integers, and cuts conversions to bf16 and FP8 off. It refuses
    the inline PTX of programmatic dependent launch, which has nothing to do: here a kernel starts when the one before has ended.
    Must come after TRITON_INTERPRET is set, and before a side is imported; where Triton cannot be imported nothing is done.
    """
    with contextlib.suppress(ImportError):
        import numpy as np
        import triton.language as tl
        from triton.language.extra import cuda
        from triton.runtime import interpreter

        types = {tl.float64: torch.float64, tl.float32: torch.float32, tl.float16: torch.float16, tl.bfloat16: torch.bfloat16}
        types |= {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}
        dot, convert = interpreter.InterpreterBuilder.create_dot, interpreter._convert_float

        def convert_float(source: Any, old: Any, new: Any, rounding: Any) -> Any:
            if old not in types or new not in types or rounding == interpreter._ir.ROUNDING_MODE.RTZ:
                return convert(source, old, new, rounding)
            value = torch.from_numpy(np.ascontiguousarray(source).view(np.uint8)).view(types[old]).to(types[new])
            return value.view(torch.uint8).numpy().view(f"uint{new.primitive_bitwidth}").reshape(source.shape)

        def widened(operand: Any) -> Any:
            if operand.dtype.scalar != tl.bfloat16:
                return operand
            return interpreter.TensorHandle(convert_float(operand.data, tl.bfloat16, tl.float32, None).view(np.float32), tl.float32)

        def create_dot(builder: Any, a: Any, b: Any, *rest: Any) -> Any:
            return dot(builder, widened(a), widened(b), *rest)

        interpreter._convert_float = convert_float
        interpreter.InterpreterBuilder.create_dot = create_dot
        cuda.gdc_wait = cuda.gdc_launch_dependents = lambda: None


def mend_interpreter_of_side() -> None:
    """Mend the interpreter if a module of a side has declared a kernel in it, by an import that no file of the pair shows."""
    if _INTERPRETER in sys.modules:
        mend_interpreter()


def was_interpreted() -> bool:
    """Whether Triton's interpreter has launched a kernel in this process."""
    interpreter = sys.modules.get(_INTERPRETER)
    return interpreter is not None and "grid_dim" in vars(vars(interpreter)["interpreter_builder"])


@functools.cache
def start_compiler() -> None:
    """Import what torch.compile imports when it is first called, which takes 3 to 5 s: it is torch's, so no side pays for it.

    The keys of torch and Triton in its caches' keys, for which all their files are read, are computed here too, once for all processes.
    It is not there in every torch; a side that needs it says so better.
    """
    with contextlib.suppress(ImportError):
        for name in ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.codecache", "torch._functorch.aot_autograd"):
            importlib.import_module(name)
    with contextlib.suppress(ImportError, AttributeError):
        sys.modules["torch._inductor.codecache"].torch_key()
    start_triton()
    gc.freeze()


def forget_compiled() -> None:
    """Have torch.compile, where a side uses it, forget what it compiled in this process, before the side is prepared at another shape.

    It would compile its second shape as one of any size. A shape would then not be checked as it is timed, alone in a process, nor would
    what is compiled here serve the processes that time it.
    """
    if compiler := sys.modules.get("torch._dynamo"):
        compiler.reset()
