"""A built .cu side becomes a step: arguments are bound by name from the workload, checked against it, and called through ctypes.

An input or output in the host's memory is bound like any other, by its address. Where that is pinned, kernels can use it as it is, and
cudaMemcpyAsync does not block (CUDA Programming Guide, "Unified Virtual Address Space").
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.host_memory import empty_in
from common.python.errors import SideFailure, Status
from common.python.pairs.directives import Directives, Scratch
from common.python.pairs.workload import Shape, ShapeValue, Spec, Workload

# Element types an argument may point to. Vector types (float4) are not among them: a tensor has elements, the side casts inside.
ELEMENTS: Mapping[str, torch.dtype] = {
    "float": torch.float32,
    "double": torch.float64,
    "__half": torch.float16,
    "half": torch.float16,
    "__nv_bfloat16": torch.bfloat16,
    "nv_bfloat16": torch.bfloat16,
    "__nv_fp8_e4m3": torch.float8_e4m3fn,
    "__nv_fp8_e5m2": torch.float8_e5m2,
    "__nv_fp8_e8m0": torch.float8_e8m0fnu,
    "__nv_fp4x2_e2m1": torch.float4_e2m1fn_x2,
    "int8_t": torch.int8,
    "uint8_t": torch.uint8,
    "unsigned char": torch.uint8,
    "int16_t": torch.int16,
    "int": torch.int32,
    "int32_t": torch.int32,
    "int64_t": torch.int64,
    "long long": torch.int64,
    "bool": torch.bool,
}
_INT = (int, ctypes.c_int32)
_INT64 = (int, ctypes.c_int64)
SCALARS: Mapping[str, tuple[type, Any]] = {
    "int": _INT,
    "int32_t": _INT,
    "int64_t": _INT64,
    "long long": _INT64,
    "float": (float, ctypes.c_float),
    "double": (float, ctypes.c_double),
    "bool": (bool, ctypes.c_bool),
}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r"\w+|\S")


@dataclass(frozen=True)
class Argument:
    """One argument of an entry point; `ctype` is its type without `const` and without the pointer's last star."""

    ctype: str
    name: str
    pointer: bool = False
    constant: bool = False

    def __str__(self) -> str:
        return f"{'const ' * self.constant}{self.ctype}{'*' * self.pointer} {self.name}"


STREAM = Argument("cudaStream_t", "stream")
STATE = Argument("void", "state", pointer=True)
STATE_OUT = Argument("void*", "state", pointer=True)


@dataclass(frozen=True)
class Names:
    """What the arguments of a side may name, at one shape. Only the tensors among the top level of `inputs` can be bound."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Spec]
    shape: Shape
    scratch: tuple[Scratch, ...] = ()
    in_place: tuple[str, ...] = ()

    @classmethod
    def of(cls, workload: Workload, directives: Directives, inputs: Mapping[str, Any], shape: Shape) -> Names:
        """The names of `workload` at `shape`, with the scratch that a side's `directives` ask for."""
        entries = {key: value for key, value in shape.items() if key in workload.shape_keys}  # the rest is of the rank
        return cls(inputs, workload.outputs_of(entries, shape), shape, directives.scratch, workload.in_place)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The inputs that a pointer can name."""
        return {name: value for name, value in self.inputs.items() if isinstance(value, torch.Tensor)}

    @property
    def writable(self) -> dict[str, Any]:
        """The dtype behind every pointer that is not const."""
        outputs = {name: spec.dtype for name, spec in self.outputs.items()}
        inputs = {name: value.dtype for name, value in self.tensors.items() if name in self.in_place}
        return {**outputs, **inputs, **{scratch.name: ELEMENTS[scratch.ctype] for scratch in self.scratch}}


@dataclass(frozen=True)
class Signatures:
    """The entry points of one source; `prepare` is empty where there is no PREPARE."""

    launch: tuple[Argument, ...]
    prepare: tuple[Argument, ...]
    finishes: bool


def label_of(source: Path) -> str:
    """How messages name a side: folder and file."""
    return f"{source.parent.name}/{source.name}"


def parse_signature(text: str, file: str) -> tuple[Argument, ...]:
    """Arguments of a signature's text, such as `const float* x, float* y, int rows, cudaStream_t stream`.

    Raises SideFailure (BUILD_FAILED) naming `file` for what is not a plain type, stars and a name.
    """
    return tuple(_parse_argument(part.strip(), file) for part in text.split(","))


def _parse_argument(text: str, file: str) -> Argument:
    # A const or __restrict__ after the star is about the parameter, not about what may be bound to it.
    *declaration, name = [token for token in _TOKEN.findall(text) if token != "__restrict__"] or [""]
    first_star = declaration.index("*") if "*" in declaration else len(declaration)
    words = [token for token in declaration[:first_star] if token != "const"]
    rest = [token for token in declaration[first_star:] if token != "const"]
    if not words or any(token != "*" for token in rest) or not all(token.isidentifier() for token in (*words, name)):
        raise _mismatch(file, f"found argument `{text}`; expected a plain type and a name, as in `const float* x`")
    ctype = " ".join(words) + "*" * (len(rest) - 1)
    return Argument(ctype, name, pointer=bool(rest), constant="const" in declaration[:first_star])


def source_signature(path: Path, macro: str = "LAUNCH") -> str:
    """The argument text of the one `macro` in the source at `path`, as the compiler would export it.

    Raises SideFailure (BUILD_FAILED) if the file has none or several.
    """
    found = _macro_texts(path, macro)
    if len(found) != 1:
        raise _mismatch(label_of(path), f"found {len(found)} {macro}(...); expected one, as in `{macro}(float* y, cudaStream_t stream)`")
    return found[0]


def read_signatures(source: Path) -> Signatures:
    """The entry points in the source's text; nothing is built. Raises SideFailure (BUILD_FAILED) for a form that is not the contract's."""
    file = label_of(source)
    launch = parse_signature(source_signature(source), file)
    prepare, finish = (
        parse_signature(source_signature(source, macro), file) if _macro_texts(source, macro) else () for macro in ("PREPARE", "FINISH")
    )
    if launch.count(STREAM) != 1:
        raise _mismatch(file, f"found {launch.count(STREAM)} `{STREAM}` in LAUNCH; expected one")
    if prepare and prepare[-1] != STATE_OUT:
        raise _mismatch(file, f"found `{prepare[-1]}` last in PREPARE; expected `{STATE_OUT}`")
    if STATE in launch and not prepare:
        raise _mismatch(file, f"found `{STATE}` in LAUNCH; expected a PREPARE that makes it")
    if finish and (finish != (STATE,) or not prepare):
        raise _mismatch(file, f"found FINISH({', '.join(map(str, finish))}); expected FINISH({STATE}) and a PREPARE")
    return Signatures(launch, prepare, bool(finish))


def _macro_texts(source: Path, macro: str) -> list[str]:
    try:
        text = _COMMENT.sub(" ", source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _mismatch(label_of(source), f"{error}; expected a readable UTF-8 text file") from error
    found = [_fold(found) for found in re.findall(rf"^[ \t]*{macro}\s*\(([^)]*)\)", text, re.MULTILINE)]
    return found + [one for included in _included_sides(source, text) for one in _macro_texts(included, macro)]


def _included_sides(source: Path, text: str) -> list[Path]:
    """The .cu files that `text` includes: a side may be another pair's, with claims of its own."""
    names = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+\.cu)"', text, re.MULTILINE)
    places = [next((folder / name for folder in source.parents if (folder / name).is_file()), None) for name in names]
    return [place for place in places if place and place.resolve() != source.resolve()]


def _fold(text: str) -> str:
    return " ".join(text.split())


def _mismatch(file: str, sentence: str) -> SideFailure:
    return SideFailure(Status.BUILD_FAILED, f"{file}: {sentence}")


def check_source(source: Path, names: Names) -> Signatures:
    """The entry points of the side at `source`, from its text alone, once every argument is known to have something to bind.

    Raises SideFailure (BUILD_FAILED) naming the file, the argument, what was found and what was expected.
    """
    file = label_of(source)
    signatures = read_signatures(source)
    _check_scratch(names, file)
    for argument in (*signatures.launch, *signatures.prepare[:-1]):
        if argument not in {STREAM, STATE}:
            (_check_pointer if argument.pointer else _check_scalar)(argument, names, file)
    for name in names.outputs:
        if name not in [argument.name for argument in signatures.launch]:
            raise _mismatch(file, f"found no argument for output {name!r} in LAUNCH; expected `{_pointer_to(names.writable[name], name)}`")
    return signatures


def _check_scratch(names: Names, file: str) -> None:
    for scratch in names.scratch:
        if scratch.ctype not in ELEMENTS:
            raise _mismatch(file, f"found scratch `{scratch.ctype} {scratch.name}`; expected an element type among {', '.join(ELEMENTS)}")
        if scratch.name in {**names.inputs, **names.outputs}:
            raise _mismatch(file, f"found scratch {scratch.name!r}; expected a name that no input or output has")


def _check_pointer(argument: Argument, names: Names, file: str) -> None:
    constant = {name: tensor.dtype for name, tensor in names.tensors.items()}
    available = constant if argument.constant else names.writable
    name = argument.name
    if name not in available:
        if name in constant:
            expected = f"`{_pointer_to(constant[name], name, const=True)}`, an input that is not in_place"
        elif name in names.writable:
            expected = f"`{_pointer_to(names.writable[name], name)}`, which the side writes"
        else:
            expected = f"const inputs among {sorted(constant)} and others among {sorted(names.writable)}"
        raise _mismatch(file, f"found argument `{argument}`; expected {expected}")
    if argument.ctype not in ELEMENTS or ELEMENTS[argument.ctype] != available[name]:
        expected = f"`{_pointer_to(available[name], name, const=argument.constant)}`, its element type (a side casts to vectors inside)"
        raise _mismatch(file, f"found argument `{argument}`; expected {expected}")


def _pointer_to(dtype: Any, name: str, *, const: bool = False) -> str:
    """The declaration that binds `dtype`; one that no argument can point to is shown as it is."""
    ctype = next((ctype for ctype, known in ELEMENTS.items() if known == dtype), str(dtype))
    return str(Argument(ctype, name, pointer=True, constant=const))


def _check_scalar(argument: Argument, names: Names, file: str) -> None:
    if argument.name not in names.shape:
        raise _mismatch(file, f"found argument `{argument}`; expected scalars among {sorted(names.shape)}, and pointers or `{STREAM}`")
    value = names.shape[argument.name]
    suitable = [ctype for ctype in SCALARS if _holds(ctype, value)]
    if argument.ctype not in suitable:
        expected = " or ".join(f"`{ctype} {argument.name}`" for ctype in suitable) or "no argument, since it is not a number"
        raise _mismatch(file, f"found argument `{argument}` for {argument.name}={value!r}; expected {expected}")


def _holds(ctype: str, value: ShapeValue) -> bool:
    kind, convert = SCALARS[ctype]
    return type(value) is kind and (kind is not int or convert(value).value == value)


def current_stream() -> int:
    """The handle of torch's current CUDA stream, as an integer for ctypes."""
    return torch.cuda.current_stream().cuda_stream


class CudaSide:
    """A loaded library with its workload: `prepare` allocates, binds and runs PREPARE, `close` runs FINISH."""

    def __init__(self, source: Path, library: Path, workload: Workload, directives: Directives, device: torch.device | None = None) -> None:
        """Load `library`, built from `source`, to work on `device`, or where the inputs are.

        Raises SideFailure (BUILD_FAILED) if it cannot be loaded or is not what the source says.
        """
        self._source = source
        self._file = label_of(source)
        self._workload = workload
        self._directives = directives
        self._device = device
        self._signatures = read_signatures(source)
        try:
            # A CDLL lets go of the GIL in a call: a launch can block on a full queue that another thread has to drain.
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise _mismatch(self._file, f"its library cannot be loaded: {error}") from error
        self._entries = {"launch": self._declared("launch", self._signatures.launch)}
        if self._signatures.prepare:
            self._entries["prepare"] = self._declared("prepare", self._signatures.prepare)
        if self._signatures.finishes:
            self._entries["finish"] = self._library.finish
        self._library.error_text.restype = ctypes.c_char_p
        self._state = ctypes.c_void_p()
        self._prepared = False
        self._bound: dict[str, torch.Tensor] = {}
        self._workspace: dict[str, torch.Tensor] = {}

    def workspace(self) -> list[torch.Tensor]:
        """Outputs and scratch: what must be poisoned before a checked call."""
        return list(self._workspace.values())

    def prepare(
        self, inputs: Mapping[str, Any], shape: Shape, stream: Callable[[], int] = current_stream
    ) -> Callable[[], tuple[torch.Tensor, ...]]:
        """Allocate outputs and scratch beside the inputs, bind everything and run PREPARE, if there is one.

        The step returned launches on `stream()` and gives the outputs in the workload's order; it and this raise SideFailure
        (LAUNCH_FAILED) for a nonzero code. Raises SideFailure (BUILD_FAILED) if a name cannot be bound. Ends an earlier preparation.
        """
        self.close()
        names = Names.of(self._workload, self._directives, inputs, shape)
        check_source(self._source, names)
        self._allocate(names)
        values = self._values(self._signatures.launch, shape, 0)
        if self._signatures.prepare:
            self._call("prepare", self._values(self._signatures.prepare, shape, stream()))
            self._prepared = True
        position = self._signatures.launch.index(STREAM)
        outputs = tuple(self._bound[name] for name in names.outputs if name not in names.in_place)
        launch = self._entries["launch"]

        def step() -> tuple[torch.Tensor, ...]:
            values[position] = stream()
            code = launch(*values)
            if code:
                raise self._failure("launch", code)
            return outputs

        return step

    def close(self) -> None:
        """Run FINISH, if a PREPARE has to be undone. Raises SideFailure (LAUNCH_FAILED) for a nonzero code."""
        if self._prepared and self._signatures.finishes:
            self._call("finish", [self._state])
        self._prepared = False
        self._state = ctypes.c_void_p()

    def _declared(self, entry: str, arguments: tuple[Argument, ...]) -> Any:
        """An entry point that knows its types: without them ctypes cuts what it is given to 32 bits."""
        try:
            exported = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(self._library, f"{entry}_signature"))).decode()
        except ValueError as error:
            raise _mismatch(self._file, f"{error}; expected it to include common/cuda/launch.cuh") from error
        if parse_signature(exported, self._file) != arguments:
            found = ", ".join(map(str, arguments))
            raise _mismatch(self._file, f"its library was built as {entry}({_fold(exported)}); expected the source's ({found})")
        function = self._library[entry]
        function.argtypes = [_ctype_of(argument) for argument in arguments]
        return function

    def _allocate(self, names: Names) -> None:
        device = self._device or next((tensor.device for tensor in names.tensors.values()), torch.device("cuda"))
        fresh = {name: spec for name, spec in names.outputs.items() if name not in names.in_place}
        self._workspace = {name: empty_in(spec.where, spec.shape, spec.dtype, device) for name, spec in fresh.items()}
        for scratch in names.scratch:
            count = scratch.elements(names.shape)
            self._workspace[scratch.name] = torch.empty(count, dtype=ELEMENTS[scratch.ctype], device=device)
        self._bound = {**names.tensors, **self._workspace}

    def _values(self, arguments: tuple[Argument, ...], shape: Shape, stream: int) -> list[Any]:
        """What to pass, already as C values, which spares every launch the conversion."""
        values: list[Any] = []
        for argument in arguments:
            if argument == STREAM:
                values.append(ctypes.c_void_p(stream))
            elif argument == STATE:
                values.append(self._state)
            elif argument == STATE_OUT:
                values.append(ctypes.byref(self._state))
            elif argument.pointer:
                tensor = self._bound[argument.name]
                if not tensor.is_contiguous():
                    raise _mismatch(self._file, f"found {argument.name!r} with strides {tensor.stride()}; expected it to be contiguous")
                values.append(ctypes.c_void_p(tensor.data_ptr()))
            else:
                values.append(_ctype_of(argument)(shape[argument.name]))
        return values

    def _call(self, entry: str, values: list[Any]) -> None:
        code = self._entries[entry](*values)
        if code:
            raise self._failure(entry, code)

    def _failure(self, entry: str, code: int) -> SideFailure:
        return SideFailure(Status.LAUNCH_FAILED, f"{self._file}: {entry} returned {code} ({self._library.error_text(code).decode()})")


def _ctype_of(argument: Argument) -> Any:
    if argument == STATE_OUT:
        return ctypes.POINTER(ctypes.c_void_p)
    if argument.pointer or argument == STREAM:
        return ctypes.c_void_p
    return SCALARS[argument.ctype][1]
