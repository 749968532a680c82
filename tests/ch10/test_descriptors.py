"""Our descriptors against the PTX ISA's bit layouts, written out here, against CUTLASS's, and against the constants in Triton's PTX."""

import importlib.util
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.build.nvcc import find_nvcc
from tests.support.cuda_sides import compiled
from tests.support.teeth import ROOT

HERE = Path(__file__).parent
ADDRESSES = (0, 0x400, 0x7C00, 0x37C00)
LEADING = 0x3FFF << 16  # means nothing where rows are swizzled: CUTLASS, as we do, says 1, Triton 0


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def numbers(printed):
    return {name: int(value, 16) for name, value in re.findall(r"^(\w+) ([0-9a-f]+)$", printed, re.MULTILINE)}


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    program = tmp_path_factory.mktemp("ours") / "descriptors"
    output("g++", "-std=c++17", "-D__host__=", "-D__device__=", f"-I{ROOT}", "-x", "c++", HERE / "descriptors.cu", "-o", program)
    return numbers(output(program))


def fields(value, layout):
    """The fields of a descriptor by name, from (first bit, number of bits); what no field covers must be zero."""
    found = {name: value >> first & (1 << bits) - 1 for name, (first, bits) in layout.items()}
    rest = value & ~sum(((1 << bits) - 1) << first for first, bits in layout.values())
    assert rest == 0, f"{rest:x} is set in {value:x}, in bits that have no name"
    return found


# PTX ISA 9.7.15.5.1.2, matrix descriptor of wgmma, and 9.7.16.4.1, shared memory descriptor of tcgen05: (first bit, bits).
ALIKE = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14)}
WGMMA = {**ALIKE, "base offset": (49, 3), "swizzle": (62, 2)}
TCGEN05 = {**ALIKE, "constant": (46, 3), "base offset": (49, 3), "leading mode": (52, 1), "zeros": (53, 8), "swizzle": (61, 3)}
# 9.7.16.4.2, instruction descriptor of .kind::f16.
INSTRUCTION = {
    "sparsity selector": (0, 2),
    "sparse": (2, 1),
    "saturate": (3, 1),
    "d": (4, 2),
    "a": (7, 3),
    "b": (10, 3),
    "negate a": (13, 1),
    "negate b": (14, 1),
    "transpose a": (15, 1),
    "transpose b": (16, 1),
    "n": (17, 6),
    "m": (24, 5),
    "shift": (30, 2),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_operands_by_the_isa(ours, address):
    said = {"start": address >> 4, "leading": 1, "stride": 1024 >> 4, "base offset": 0}
    assert fields(ours[f"wgmma_{address:x}"], WGMMA) == {**said, "swizzle": 1}
    expected = {**said, "constant": 0b001, "leading mode": 0, "zeros": 0, "swizzle": 2}
    assert fields(ours[f"tcgen05_{address:x}"], TCGEN05) == expected


@pytest.mark.parametrize(("name", "m", "n"), [("64", 128, 64), ("128", 128, 128), ("256", 128, 256), ("pair", 256, 256)])
def test_the_instruction_by_the_isa(ours, name, m, n):
    fp32, bf16 = 1, 1
    expected = {**dict.fromkeys(INSTRUCTION, 0), "d": fp32, "a": bf16, "b": bf16, "n": n >> 3, "m": m >> 4}
    assert fields(ours[f"instruction_{name}"], INSTRUCTION) == expected


def test_a_tensor_address_has_the_lane_in_its_upper_half(ours):
    assert ours["tensor"] == 0x20 + 192 | 96 << 16


def through_descriptor(value, row, byte):
    """Where a tensor core finds a byte of a K-major operand: 8 rows of 128 bytes, then the stride; bits 4-6 XOR bits 7-9."""
    linear = (value & 0x3FFF) * 16 + row // 8 * (value >> 32 & 0x3FFF) * 16 + row % 8 * 128 + byte
    return linear ^ (linear >> 7 & 7) << 4


@pytest.mark.parametrize("kind", ["wgmma", "tcgen05"])
@pytest.mark.parametrize("product", range(4), ids=lambda product: f"columns from {16 * product}")
def test_a_product_finds_what_was_stored_in_the_swizzle(ours, kind, product):
    for address in ADDRESSES:
        value = ours[f"{kind}_{address:x}"] + (32 * product >> 4)
        for row in range(256):
            for chunk in range(2):
                stored = address + ours[f"swizzled_{row}_{2 * product + chunk}"]
                assert through_descriptor(value, row, 16 * chunk) == stored, (address, row, chunk)


@pytest.fixture(scope="module")
def theirs():
    """What CUTLASS gives. CI, which runs what is slow, installs all that this needs, so what is missing is a failure and no skip."""
    package = importlib.util.find_spec("cutlass_library")
    assert package, "no package nvidia-cutlass, whose headers this compares with: ./setup.sh"
    headers = Path(package.origin).parent / "source" / "include"
    source = HERE / "cutlass_descriptors.cu"
    command = f"{find_nvcc()} -std=c++17 -arch=sm_100a -w -isystem {headers} {source} -o {{}}"
    return numbers(output(compiled(command, "cutlass_descriptors", [source])))


@pytest.mark.slow
def test_cutlass_gives_the_same_instructions_operands_by_rows_and_swizzle(ours, theirs):
    same = {name: value for name, value in theirs.items() if "_slice_" not in name}
    assert len(same) == 4 + 256 * 8 + 2 * len(ADDRESSES)
    assert {name: ours[name] for name in same} == same


@pytest.mark.slow
@pytest.mark.parametrize("rows", [64, 128, 192, 256])
@pytest.mark.parametrize("kind", ["wgmma", "tcgen05"])
def test_cutlass_gives_the_same_operands(ours, theirs, kind, rows):
    """At every address, for each of the four products of a step: what our kernels add to the first one's descriptor is 32 bytes."""
    for address, product in itertools.product(ADDRESSES, range(4)):
        mine = ours[f"{kind}_{address:x}"] + (32 * product >> 4)
        assert mine == theirs[f"{kind}_{address:x}_slice_{product}_of_{rows}_rows"], (hex(address), product)


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "kind", "tile_n"), [(90, "wgmma", 128), (100, "tcgen05", 128), (100, "tcgen05", 256)])
def test_triton_has_the_same_constants_in_its_ptx(ours, capability, kind, tile_n):
    ptx = output(sys.executable, HERE / "triton_matmul.py", str(capability), str(tile_n))
    constants = {int(number) for number in re.findall(r"\b\d{6,}\b", ptx)}
    operand = ours[f"{kind}_0"] & ~LEADING
    assert {operand + (32 * product >> 4) for product in range(4)} <= constants
    if kind == "tcgen05":
        registers = set(re.findall(r"tcgen05\.mma[^;]*, (%r\d+), %p\d+;", ptx))
        assert registers
        moved = {int(value) for register in registers for value in re.findall(rf"mov\.b32\s+{register}, (\d+);", ptx)}
        assert moved == {ours[f"instruction_{tile_n}"]}
