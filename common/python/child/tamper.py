"""Whether the harness that shares a process with a side is still the harness: what its code uses must be what it was.

A side runs where its stopwatch runs, so it could replace the stopwatch, or let a replaced function of the harness do its work
once the clock has stopped. What the harness does not use, a side may patch as it likes: its answers are judged elsewhere. So
sealed are this project's own modules, and outside them what their functions use, which is read from their code.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib
import inspect
import pathlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType

import torch
from torch.utils.data._utils import signal_handling

_PACKAGE = "common"
_CLASSES = (pathlib.PosixPath, socket.socket, torch.Generator, torch.Tensor, torch.cuda.Event, torch.cuda.Stream)
_BENEATH = (
    (torch._C, "_cuda_synchronize"),  # what torch.cuda.synchronize comes down to
    (signal_handling, "_error_if_any_worker_fails"),  # what a DataLoader's handler of SIGCHLD calls
    (signal_handling, "__file__"),
)
_HOOKS = frozenset(("__getattribute__", "__getattr__", "__setattr__", "__init__", "__new__", "__call__"))

# A namespace, a name in it, what the name stood for (None for nothing), and how to tell a reader.
_Kept = tuple[Mapping[str, object], str, object, str]


@functools.cache
def seal() -> Callable[[], str]:
    """A function that tells in a sentence what was replaced since now, or nothing; to be made before any side is imported.

    A call looks nothing up by a name that a side could replace.
    """
    modules: list[object] = list(sys.modules.values())  # a library may have put something else into a module's place
    ours = [module for module in modules if isinstance(module, ModuleType) and _is_ours(module)]
    functions = [function for module in ours for function in _functions(module)]
    names = frozenset(name for function in functions for code in _codes(function) for name in code.co_names) | _captured(ours)
    kept = [*_own(ours), *_used_modules(functions), *_used_methods(names)]
    codes = [(function, function.__code__, function.__defaults__, function.__kwdefaults__) for function in functions]
    torch_modes = (torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack)
    tracers = [(tracer, tracer()) for tracer in (sys.gettrace, sys.getprofile)]
    handler_of = importlib.import_module("_signal").getsignal  # what signal.getsignal comes down to
    signal_names = {int(known): known.name for known in signal.Signals}  # most of those for real time have none
    handlers = [(int(number), handler_of(number)) for number in sorted(signal.valid_signals())]
    kernels = torch.library._impls
    kernels_then = frozenset(kernels)

    def broken() -> str:
        for space, name, value, where in kept:
            if space.get(name) is not value:
                return f"found {where}.{name} replaced by the side; expected the harness as it was"
        for function, code, defaults, keyword_defaults in codes:
            if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not keyword_defaults:
                where = f"{function.__qualname__} in {function.__module__}"
                return f"found the code of {where} replaced by the side; expected the harness as it was"
        for depth in torch_modes:
            if depth():
                return "found a torch mode that the side left switched on; expected none, for it sees what the harness does"
        for tracer, then in tracers:
            if tracer() is not then:
                return "found a trace or profile function of the side's; expected none, for it runs while the harness does"
        for number, then_handler in handlers:
            handler = handler_of(number)
            if callable(handler) and handler is not then_handler and not _is_of_data_loader(handler):
                name = signal_names.get(number, str(number))
                return f"found a handler of {name} of the side's; expected none, for it runs while the harness does"
        for kernel in kernels - kernels_then:
            if kernel.startswith("aten/") and kernel.split("/")[1].split(".")[0] in names and not kernel.endswith("/Meta"):
                return f"found torch's operator {kernel} replaced by the side; expected the one that the harness uses"
        return ""

    return broken


def _is_of_data_loader(handler: object) -> bool:
    """Whether torch set it, to hear of a DataLoader's workers that die, and it calls no handler from before."""
    if not isinstance(handler, FunctionType) or handler.__code__.co_filename != signal_handling.__file__:
        return False
    return all(cell.cell_contents is None for cell in handler.__closure__ or ())


def _is_ours(module: ModuleType) -> bool:
    return f"{_name(module)}.".startswith(f"{_PACKAGE}.")


def _name(module: ModuleType) -> str:
    """The name under which it would be imported, which a module that runs as a script has in its spec alone."""
    spec = vars(module).get("__spec__")
    return str(spec.name if spec is not None else module.__name__)


def _classes(module: ModuleType) -> Iterator[type]:
    return (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Every function that `module` defines, methods included."""
    for space in (module, *_classes(module)):
        for value in vars(space).values():
            match value:
                case property():
                    function = value.fget
                case staticmethod() | classmethod():
                    function = value.__func__
                case _:
                    function = inspect.unwrap(value) if callable(value) else value
            if isinstance(function, FunctionType) and function.__globals__ is vars(module):
                yield function


def _codes(function: FunctionType) -> Iterator[CodeType]:
    """Its code and that of the functions inside it."""
    codes = [function.__code__]
    for code in codes:
        yield code
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _captured(modules: list[ModuleType]) -> frozenset[str]:
    """The names that what our modules bound under names of their own has where it comes from: clone for _clone."""
    values = [value for module in modules for value in vars(module).values()]
    return frozenset(str(value.__name__) for value in values if callable(value) and hasattr(value, "__name__"))


def _own(modules: list[ModuleType]) -> Iterator[_Kept]:
    """All that our modules and their classes hold."""
    for module in modules:
        for name, value in vars(module).items():
            if not name.startswith("__"):
                yield vars(module), name, value, _name(module)
        for each in _classes(module):
            for name in {*vars(each), *_HOOKS}:
                if not name.startswith("__") or name in _HOOKS:
                    yield vars(each), name, vars(each).get(name), f"{_name(module)}.{each.__name__}"


def _used_modules(functions: list[FunctionType]) -> Iterator[_Kept]:
    """What `functions` use of modules by a chain of names, such as torch.cuda.synchronize, and of builtins."""
    for function in functions:
        for code in _codes(function):
            value: object = None
            for instruction in dis.get_instructions(code):
                name = instruction.argval
                if instruction.opname == "LOAD_GLOBAL":
                    value = function.__globals__.get(name)
                    if value is None and hasattr(builtins, name):
                        yield vars(builtins), name, vars(builtins)[name], "builtins"
                        yield function.__globals__, name, None, function.__module__  # or a global would take its place
                elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, ModuleType):
                    yield vars(value), name, vars(value).get(name), value.__name__
                    value = vars(value).get(name)
                elif instruction.opname != "CACHE":
                    value = None


def _used_methods(names: frozenset[str]) -> Iterator[_Kept]:
    for each in _CLASSES:
        for name in _HOOKS | names & set(dir(each)):
            for base in each.__mro__[:-1]:
                yield vars(base), name, vars(base).get(name), f"{each.__module__}.{each.__name__}"
    for module, name in _BENEATH:
        if name in vars(module):
            yield vars(module), name, vars(module)[name], module.__name__
