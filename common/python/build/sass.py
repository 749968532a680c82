"""The machine code of a built library or cubin: its instructions and what they use, by kernel and architecture."""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.python.build.cache import keep, kept
from common.python.machine.description import find_tool, version_of

_TIMEOUT_S = 300.0  # a library of CUTLASS kernels is megabytes of code

# cuobjdump prints for each ELF in a binary what its kernels use, then the architecture, then their instructions.
_USED = re.compile(r"^ Function (?P<symbol>\S+):\n\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+) ", re.MULTILINE)
_ARCHITECTURE = re.compile(r"^\s*code for sm_(\w+)$", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function : ", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ +)?([^;\n]+?) *;", re.MULTILINE)

# What ptxas -v says of a kernel; a function that is called, not inlined, has properties of its own between the two lines.
_SPILLED = re.compile(
    r"Compiling entry function '(?P<symbol>[^']+)' for 'sm_(?P<architecture>\w+)'"
    r"(?:(?!Compiling entry).)*?Function properties for (?P=symbol)\n"
    r"\s*\d+ bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads",
    re.DOTALL,
)
_SYSTEM_SHARED = 1024  # bytes that CUDA takes for itself in a block that uses shared memory at all


class Unreadable(Exception):
    """Machine code could not be read; the text is one sentence."""


@dataclass(frozen=True)
class Kernel:
    """One kernel for one architecture (`90a`); instructions are without predicates, `shared_bytes` are those known to the compiler.

    `spill_bytes` counts stores and loads of spilled registers; of a cubin, which comes without its compiler's log, it is the
    stack frame, since Triton has nothing else to put there.
    """

    name: str
    architecture: str
    instructions: tuple[str, ...]
    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int


@functools.cache
def read_code(binary: Path, log: str = "") -> tuple[Kernel, ...]:
    """The kernels of a library or a cubin; `log` is what `ptxas -v` printed when it was built. Raises Unreadable."""
    spilled = {(match["architecture"], match["symbol"]): int(match["stores"]) + int(match["loads"]) for match in _SPILLED.finditer(log)}
    return tuple(kernel for elf in _listing(binary).split("\nResource usage:")[1:] for kernel in _kernels(elf, spilled))


def _kernels(elf: str, spilled: dict[tuple[str, str], int]) -> Iterator[Kernel]:
    used = {match["symbol"]: match for match in _USED.finditer(elf)}
    for function in _FUNCTION.split(elf)[1:]:
        symbol = function.partition("\n")[0].strip()
        architecture = _ARCHITECTURE.findall(elf)[0]
        stack = int(used[symbol]["stack"])
        yield Kernel(
            name=demangled(symbol),
            architecture=architecture,
            instructions=tuple(_INSTRUCTION.findall(function)),
            registers=int(used[symbol]["registers"]),
            stack_bytes=stack,
            spill_bytes=spilled.get((architecture, symbol), stack),
            shared_bytes=max(0, int(used[symbol]["shared"]) - _SYSTEM_SHARED),
        )


def _listing(binary: Path) -> str:
    """What the disassembler prints of `binary`, kept beside it: a library's name is a hash of what went into it."""
    tool = find_tool("cuobjdump")
    if tool is None or find_tool("nvdisasm") is None:
        raise Unreadable("no cuobjdump and nvdisasm to read machine code with: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm")
    place = binary.with_name(f"{binary.name}.{version_of('cuobjdump')}.sass")
    listing = kept(place)
    if listing is None:
        try:
            done = subprocess.run([tool, "-sass", "-res-usage", binary], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unreadable(f"{tool.name} cannot read {binary.name}: {error}") from error
        listing = done.stdout
        keep(place, listing)
    return listing


def demangled(symbol: str) -> str:
    """The C++ name behind `symbol`, as profilers print it; what is not mangled comes back as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    release = ctypes.CDLL(None)["free"]
    demangle.restype, release.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    address = demangle(symbol.encode(), None, None, None)
    if not address:
        return symbol
    name = ctypes.string_at(address).decode()
    release(address)
    return name


def base_name(kernel: str) -> str:
    """What a reader calls a kernel: its name without return type, namespaces and arguments."""
    plain = re.split(r"[<(]", kernel.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    return plain.rpartition(" ")[2].rpartition("::")[2] or kernel
