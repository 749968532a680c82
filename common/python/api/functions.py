"""Functions by name and by value: which can be imported in another process, how they are called, and the workload around them."""

from __future__ import annotations

import importlib
import inspect
import symtable
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from common.python.api.tried import told
from common.python.child.sides.inputs import leaves
from common.python.errors import BenchmarkError
from common.python.pairs.workload import Cache, Clock, ReferenceIn, Shape, Spec, Workload

# |x - y| <= atol + rtol |y|: what torch.testing.assert_close allows by default
_RTOL = {torch.float16: 1e-3, torch.bfloat16: 1.6e-2, torch.float32: 1.3e-6, torch.float64: 1e-7}
_ATOL = {torch.float16: 1e-5, torch.bfloat16: 1e-5, torch.float32: 1e-5, torch.float64: 1e-7}
_NO_SHAPE = {"_": 0}  # a workload has a shape; this is that of functions with none


def only_inputs(given: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """What of `given` is no entry of the shape, nor what stands for one where there is none."""
    return {name: value for name, value in given.items() if name not in shape and name not in _NO_SHAPE}


def label_of(function: object) -> str:
    """What a function is called in a sentence: its own name, or that of the attribute which holds it where its own is another's."""
    own = str(function.__name__) if hasattr(function, "__name__") else type(function).__name__
    if not callable(function) or own_name_of(function):
        return own
    return _place_of(function)[1] or own


def name_of(function: object) -> str:
    """`module:function`, by which another process finds the same object; "" of a lambda, a notebook's cell and others without one.

    A function that is not found by its own name, as `torch.compile(f)`, has that of the attribute of a module that holds it.
    """
    if own := own_name_of(function):
        return own
    module, attribute = _place_of(function)
    return f"{module}:{attribute}" if module not in ("", "__main__") and _has_no_state(function) else ""


def own_name_of(function: object) -> str:
    """`module:function` as the function itself has it, or "" where another object, or none, is found there."""
    module = str(function.__module__)
    if inspect.isfunction(function):
        name = str(function.__qualname__)
    else:  # of torch.relu the qualified name is that of a class of torch's own
        name = str(function.__name__) if hasattr(function, "__name__") else type(function).__name__
    if module == "__main__" or "<" in name:
        return ""
    try:
        return f"{module}:{name}" if found(f"{module}:{name}") is function else ""
    except (ImportError, AttributeError):
        return ""


def _place_of(function: object) -> tuple[str, str]:
    """A module whose file assigns this very object, or the program's own, and the attribute that holds it; else two empty texts."""
    home = str(function.__module__)
    loaded: dict[str, object] = {**sys.modules}
    for name, module in sorted(loaded.items(), key=lambda each: (each[0] == "__main__", each[0] != home)):
        if isinstance(module, ModuleType) and module.__name__ == name != "__mp_main__":  # that is a copy or another name of the program
            for attribute, value in vars(module).copy().items():
                if value is not function:
                    continue
                if not attribute.startswith("_") if name == "__main__" else _assigns(module, attribute):  # a notebook's _ is its last value
                    return name, attribute
    return "", ""


def _assigns(module: ModuleType, attribute: str) -> bool:
    """Whether the file of a module gives the attribute its value, so that it is neither imported there nor set from elsewhere."""
    try:
        symbol = symtable.symtable(inspect.getsource(module), module.__name__, "exec").lookup(attribute)
    except (OSError, TypeError, SyntaxError, KeyError):
        return False
    return symbol.is_assigned() and not symbol.is_imported()


def _has_no_state(function: object) -> bool:
    """Whether a file makes the same function in each process: a closure, or a module's weights, may differ."""
    wrapped = inspect.unwrap(function) if inspect.isfunction(function) else None
    if not inspect.isfunction(wrapped):
        return wrapped is not None and bool(own_name_of(wrapped))
    return wrapped.__closure__ is None and wrapped.__module__ != "__main__"


def mark_of(function: Callable[..., Any]) -> str:
    """What tells a function from one that took its name."""
    wrapped = inspect.unwrap(function)
    place = f"{Path(wrapped.__code__.co_filename).name}:{wrapped.__code__.co_firstlineno}" if inspect.isfunction(wrapped) else ""
    name = str(wrapped.__qualname__) if hasattr(wrapped, "__qualname__") else type(wrapped).__name__
    return f"{'itself' if wrapped is function else 'wrapped'} {name} {place}"


def has_mark(name: str, mark: str) -> bool:
    """Whether the object of a name, as this process finds it, is the one that was marked."""
    try:
        return mark_of(found(name)) == mark
    except (ImportError, AttributeError):
        return False


def found(name: str) -> Any:
    """The object that `name_of` has named."""
    module, _, qualified = name.partition(":")
    thing: Any = importlib.import_module(module)
    for part in qualified.split("."):
        thing = getattr(thing, part)
    return thing


def bound(function: Callable[..., Any], inputs: Mapping[str, Any], shape: Shape, name: str = "") -> Callable[[], Any]:
    """`function` with its arguments: by name where its parameters have the inputs' names, else the inputs in their order.

    Raises BenchmarkError where it takes other arguments; it is called `name` there, or as `label_of` has it.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of torch's own functions
        return partial(function, *inputs.values())
    parameters = signature.parameters.values()
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    available = {**shape, **inputs}
    others = [each for each in parameters if each not in named and each.kind is not each.VAR_KEYWORD]
    if not others and any(each.kind is each.VAR_KEYWORD for each in parameters):
        return partial(function, **{name: value for name, value in available.items() if name in inputs or name in signature.parameters})
    if not others and all(each.name in available or each.default is not each.empty for each in named):
        return partial(function, **{each.name: available[each.name] for each in named if each.name in available})
    try:
        signature.bind(*inputs.values())
    except TypeError:
        needed = [
            each.name for each in parameters if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        example = ", ".join(f"{each!r}: ..." for each in needed)
        raise BenchmarkError(
            f"{name or label_of(function)} takes {' and '.join(needed) or 'nothing'}: found {_counted(inputs)}; "
            f"expected inputs to be a dict, as {{{example}}}, or a tuple in that order"
        ) from None
    return partial(function, *inputs.values())


def _counted(inputs: Mapping[str, Any]) -> str:
    return f"{len(inputs)} input{'' if len(inputs) == 1 else 's'}, {' and '.join(inputs)}" if inputs else "no inputs"


def described(inputs: Mapping[str, Any]) -> dict[str, str]:
    """What functions are called with, by name, in words: dtype and shape of a tensor, a number or a text as it is, else its type."""
    return {name: _described(value) for name, value in leaves(inputs)}


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return repr(value) if isinstance(value, (bool, int, float, str)) else type(value).__name__


@dataclass(frozen=True)
class Question:
    """What functions are timed on, and how they must answer; see `compare` for the meaning of each."""

    inputs: Any
    shape: Shape = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    work: Any = None
    rtol: float | None = None
    atol: float | None = None
    clock: Clock = "device"
    cache: Cache = "cold"
    constants: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    reference_in: ReferenceIn = "float64"

    def workload(self, first: Callable[..., Any], outputs: Mapping[str, Spec]) -> Workload:
        """The workload of these inputs; `first` is the function that answers where no reference does."""
        if isinstance(self.inputs, Workload):
            return self.inputs
        dtypes = [spec.dtype for spec in outputs.values()]
        answer = self.reference or first
        inputs = given_inputs(self.inputs)
        called = "reference" if self.reference else f"{label_of(first)}, called in {self.reference_in} as the reference"
        other = "reference=" if self.reference_in == "float32" else "reference=, or reference_in='float32'"
        expected = "no exception" if self.reference else f"{other}, as where a function holds tensors of its own"

        def reference(**values: Any) -> Any:
            with told(called, expected):
                return bound(answer, only_inputs(values, self.shape), self.shape)()

        return Workload(
            inputs=inputs,
            outputs=lambda **_: dict(outputs),
            reference=reference,
            time_at=dict(self.shape) or dict(_NO_SHAPE),
            cpu_at=dict(self.shape) or dict(_NO_SHAPE),
            check_at=(dict(self.shape) or dict(_NO_SHAPE),),
            work=lambda **shape: dict(self._work(shape)),
            rtol=max(_RTOL.get(dtype, 0.0) for dtype in dtypes) if self.rtol is None else self.rtol,
            atol=max(_ATOL.get(dtype, 0.0) for dtype in dtypes) if self.atol is None else self.atol,
            clock=self.clock,
            cache=self.cache,
            constants=self.constants,
            in_place=self.in_place,
            reference_in=self.reference_in,
        )

    def _work(self, shape: Shape) -> Mapping[str, float]:
        if callable(self.work):
            return dict(self.work(**only_inputs(shape, {})))
        return self.work or {}

    @property
    def are_same_in_every_call(self) -> bool:
        """Whether the inputs are tensors, and no function that draws new ones."""
        return not isinstance(self.inputs, Workload) and not callable(self.inputs)


def given_inputs(inputs: Any) -> Callable[..., dict[str, Any]]:
    """A workload's `inputs` out of a function of `rand`, a dict of tensors, a sequence of them, or one; else raises BenchmarkError."""
    if callable(inputs):
        return lambda rand, **shape: named_inputs(inputs(rand, **only_inputs(shape, {})))
    tensors = named_inputs(inputs)

    def again(rand: Any, **_: Any) -> dict[str, Any]:
        return {name: rand.place(each, "device") if isinstance(each, torch.Tensor) else each for name, each in tensors.items()}

    return again


def named_inputs(inputs: Any) -> dict[str, Any]:
    """Inputs by name; those of a sequence are `x0`, `x1` and so on, and a function gets them in their order."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if isinstance(inputs, torch.Tensor):
        return {"x0": inputs}
    if isinstance(inputs, (list, tuple)):
        return {f"x{position}": each for position, each in enumerate(inputs)}
    raise BenchmarkError(f"inputs={type(inputs).__name__}; expected a function of rand, tensors, or a Workload")


def specs_of(returned: Any, name: str) -> dict[str, Spec]:
    """The outputs in what a function returned. Raises BenchmarkError if that is no tensor and no sequence of tensors."""
    tensors = (returned,) if isinstance(returned, torch.Tensor) else returned
    if not isinstance(tensors, (list, tuple)) or not tensors or not all(isinstance(each, torch.Tensor) for each in tensors):
        found = "None" if returned is None else type(returned).__name__
        raise BenchmarkError(f"{name} returned {found}; expected a tensor, or a tuple of tensors")
    names = ["out"] if len(tensors) == 1 else [f"out{position}" for position in range(len(tensors))]
    specs = {key: Spec(tuple(each.shape), each.dtype) for key, each in zip(names, tensors, strict=True)}
    for key, spec in specs.items():
        if spec.elements == 0:
            raise BenchmarkError(f"{name} returned {key} of shape {spec.shape}; expected no extent below 1, or nothing is checked")
    return specs


def search_path() -> list[str]:
    """Where this process finds modules, as another needs it: the working directory by its name."""
    return [str(Path(folder or ".").resolve()) for folder in sys.path]
