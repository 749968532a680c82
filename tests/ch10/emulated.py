"""Sides of chapter 10 on the CPU: their own code, with stand-ins for the headers that are PTX, as a library to launch."""

import ctypes
import re
import subprocess

import torch

from common.python.random_inputs import Inputs
from tests.teeth import CPU, ROOT

CHAPTER = ROOT / "ch10"
STAND_INS = ROOT / "tests" / "ch10" / "on_cpu"
SKELETON = "shared_triple_overlap.cuh"
LAZINESS = {"at once": 0, "by chance": 1, "late": 2}


def build(side, folder):
    """The library of a .cu side of chapter 10, in `folder`."""
    for file in (side, SKELETON, "shared_tile.cuh"):
        (folder / file).write_text(translated((CHAPTER / file).read_text()))
    library = folder / f"{side}.so"
    flags = (
        "-std=c++17",
        "-O2",
        "-w",
        "-fno-strict-aliasing",
        "-fno-gnu-unique",
        "-Wl,-Bsymbolic",
        "-shared",
        "-fPIC",
        f"-I{STAND_INS}",
        f"-I{ROOT}",
    )
    subprocess.run(["g++", *flags, "-x", "c++", folder / side, "-o", library], check=True)
    return Emulated(ctypes.CDLL(str(library)))


def translated(text):
    """C++: launches are calls, shared memory is the machine's, and a wait for products knows its line."""
    text = re.sub(r"(\w+(?:<Mma>)?)<<<(.+?), THREADS, .+?>>>\((.*?)\);", r"on_cpu::launch(\2, THREADS, [=] { \1(\3); });", text)
    text = re.sub(r"extern __shared__ .* bytes\[\];", "unsigned char* const bytes = on_cpu::shared_memory;", text)
    text = re.sub(
        r"__shared__ alignas\(SWIZZLE_PERIOD\) unsigned char (\w+)\[([^]]+)\], (\w+)\[[^]]+\];",
        r"unsigned char *const \1 = on_cpu::shared_memory, *const \3 = \1 + \2;",
        text,
    )
    return re.sub(r"wgmma_wait<(\d)>\(\)", r"wgmma_wait_\1", text)


class Emulated:
    """A side that was built: `run` gives its answer, or says what was wrong."""

    def __init__(self, library):
        self._library = library
        library.launch.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_void_p]
        library.on_cpu_set.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        library.error_text.restype = ctypes.c_char_p

    def run(self, inputs, shape, *, seed=1, laziness="by chance", multiprocessors=2, skipped=""):
        """The product, from a machine of so many multiprocessors. Raises RuntimeError for what a program must not do."""
        m, n, k = (shape[name] for name in "mnk")
        c = torch.full((m, n), torch.nan, dtype=torch.bfloat16)
        self._library.on_cpu_set(seed, LAZINESS[laziness], multiprocessors, skipped.encode())
        code = self._library.launch(inputs["a"].data_ptr(), inputs["b"].data_ptr(), c.data_ptr(), m, n, k, None)
        if code:
            raise RuntimeError(self._library.error_text(code).decode())
        return c


def inputs_of(workload, shape):
    """The inputs of a workload at a shape."""
    return Inputs(workload, shape, 1, CPU, ROOT).values
