"""Runs the few PTX instructions that the project's kernels use, thread by thread, and counts what each thread touches.

Where a warp multiplies matrices, its threads wait for each other. Source of their fragments: PTX ISA, mma.m16n8k16 with bf16.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

_ENTRY = re.compile(r"\.entry (\w+)\((.*?)\)[^{]*\{(.*?)\n\}", re.DOTALL)
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
_MASKS = {"b32": (1 << 32) - 1, "u32": (1 << 32) - 1, "b64": (1 << 64) - 1, "u64": (1 << 64) - 1}

Memory = dict[int, int]  # a 32-bit word by its address


def entries(path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Each kernel's parameters and its lines."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    found = {}
    for name, parameters, body in _ENTRY.findall(text):
        lines = [line.strip().rstrip(";") for line in body.splitlines() if line.strip() and not line.strip().startswith(".")]
        found[name] = (re.findall(r"\.param \.\w+ (\w+)", parameters), lines)
    return found


class Run:
    """One launch: `memory` is read and written; `loads` and `stores` count the accesses of each word."""

    def __init__(self, path: Path, kernel: str, arguments: tuple[int, ...], memory: Memory) -> None:
        names, self._lines = entries(path)[kernel]
        self._arguments = dict(zip(names, arguments, strict=True))
        self._labels = {line[:-1]: number for number, line in enumerate(self._lines) if line.endswith(":")}
        self.memory = memory
        self.loads: Counter[int] = Counter()
        self.stores: Counter[int] = Counter()

    def launch(self, blocks: int, threads: int) -> None:
        """Run every thread to its end, one after the other, or up to where its warp multiplies."""
        for block in range(blocks):
            for first in range(0, threads, 32):
                lanes = [
                    {"%tid.x": thread, "%ntid.x": threads, "%ctaid.x": block, "%nctaid.x": blocks}
                    for thread in range(first, min(first + 32, threads))
                ]
                for asked in zip_longest(*(self._thread(registers) for registers in lanes)):
                    assert (len(lanes), len(set(asked))) == (32, 1), f"{_MMA} by a part of a warp"
                    _multiply(asked[0], lanes)

    def _thread(self, registers: dict[str, int]) -> Iterator[str]:
        """Run a thread; the operands of each product of its warp, which is done by whoever takes them."""
        number = 0
        while number < len(self._lines):
            line = self._lines[number]
            number += 1
            if line.endswith(":"):
                continue
            if line.startswith("@"):
                guard, _, line = line.partition(" ")
                if not registers[guard[1:]]:
                    continue
            operation, _, rest = line.partition(" ")
            if operation == "ret":
                return
            if operation == "bra":
                number = self._labels[rest]
            elif operation == _MMA:
                yield rest
            else:
                self._step(operation.split("."), [part.strip() for part in re.split(r",(?![^{]*\})", rest)], registers)

    def _step(self, parts: list[str], operands: list[str], registers: dict[str, int]) -> None:
        if parts[:2] == ["ld", "param"]:
            registers[operands[0]] = self._arguments[operands[1].strip("[]")]
        elif parts[:2] in (["ld", "global"], ["st", "global"]):
            self._access(parts, operands, registers)
        else:
            values = [_value(operand, registers) for operand in operands[1:]]
            registers[operands[0]] = _OPERATIONS[".".join(parts[:-1])](parts[-1], *values)

    def _access(self, parts: list[str], operands: list[str], registers: dict[str, int]) -> None:
        loads = parts[0] == "ld"
        words, place = operands if loads else reversed(operands)
        base, _, offset = place.strip("[]").partition("+")
        address = registers[base] + int(offset or 0)
        names = [word.strip() for word in words.strip("{}").split(",")]
        assert address % (4 * len(names)) == 0, f"{'.'.join(parts)} at {address}"
        for i, name in enumerate(names):
            word = address + 4 * i
            (self.loads if loads else self.stores)[word] += 1
            if loads:
                registers[name] = self.memory[word]
            else:
                self.memory[word] = registers[name]


def _value(operand: str, registers: Mapping[str, int]) -> int:
    if operand in registers:
        return registers[operand]
    return int(operand.replace("0f", "0x"), 0)


def _multiply(operands: str, lanes: list[dict[str, int]]) -> None:
    """d = a b + c, of 16 x 16, 16 x 8 and 16 x 8, a pair of bfloat16 a word; lane 4 g + t has these rows and columns."""
    d, a, b, c = ([name.strip() for name in names.split(",")] for names in re.findall(r"\{(.*?)\}", operands))
    left, right, sums = {}, {}, {}
    for lane, registers in enumerate(lanes):
        g, t = divmod(lane, 4)
        for i in range(2):
            for word in range(4):
                left[g + 8 * (word % 2), 2 * t + i + 8 * (word // 2)] = _bf16(registers[a[word]], i)
            for word in range(2):
                right[2 * t + i + 8 * word, g] = _bf16(registers[b[word]], i)
        for word in range(4):
            sums[g + 8 * (word // 2), 2 * t + word % 2] = (registers, word)
    for (row, column), (registers, word) in sums.items():
        total = sum(left[row, k] * right[k, column] for k in range(16))
        registers[d[word]] = _bits(total + _float(registers[c[word]]))


def _bf16(word: int, half: int) -> float:
    return _float((word >> 16 * half & 0xFFFF) << 16)


def _float(bits: int) -> float:
    return float(struct.unpack("f", struct.pack("I", bits))[0])


def _bits(value: float) -> int:
    return int(struct.unpack("I", struct.pack("f", value))[0])


def _wrapped(compute: Callable[..., int]) -> Callable[..., int]:
    return lambda kind, *values: compute(*values) & _MASKS[kind]


def _wide(compute: Callable[..., int]) -> Callable[..., int]:
    return lambda kind, *values: compute(*values) & _MASKS["u64"]


def _fused(kind: str, *bits: int) -> int:
    x, y, z = map(_float, bits)
    return _bits(x * y + z)


def _added(kind: str, x: int, y: int) -> int:
    return _bits(_float(x) + _float(y)) if kind == "f32" else (x + y) & _MASKS[kind]


def _exclusive(kind: str, x: int, y: int, z: int, table: int) -> int:
    assert table == 0x96
    return x ^ y ^ z


_OPERATIONS: dict[str, Any] = {
    "mov": _wrapped(lambda x: x),
    "cvt.u64": lambda kind, x: x & _MASKS[kind],
    "cvt.u32": lambda kind, x: x & _MASKS["u32"],
    "and": _wrapped(lambda x, y: x & y),
    "or": _wrapped(lambda x, y: x | y),
    "shr": _wrapped(lambda x, y: x >> y),
    "add": _added,
    "sub": _wrapped(lambda x, y: x - y),
    "mul.lo": _wrapped(lambda x, y: x * y),
    "mul.wide": _wide(lambda x, y: x * y),
    "mad.wide": _wide(lambda x, y, z: x * y + z),
    "mad.lo": _wrapped(lambda x, y, z: x * y + z),
    "lop3": _exclusive,
    "fma.rn": _fused,
    "setp.ge": lambda kind, x, y: int(x >= y),
    "setp.ne": lambda kind, x, y: int(x != y),
}
