"""Sides of chapter 10 on the CPU: their own code, with stand-ins for the headers that are PTX, as a library to launch."""

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from common.python.child.sides.inputs import Inputs
from common.python.session.session import BUILD_CACHE
from tests.support.teeth import CPU, ROOT, accepts

CHAPTER = ROOT / "ch10"
STAND_INS = ROOT / "tests" / "ch10" / "on_cpu"
SKELETON = "shared_triple_overlap.cuh"
FLAGS = ("-std=c++17", "-O2", "-w", "-fno-strict-aliasing", "-fno-gnu-unique", "-Wl,-Bsymbolic", "-shared", "-fPIC")
LAZINESS = {"at once": 0, "by chance": 1, "late": 2}


_LAUNCH = re.compile(r"(\w+)(<[^<>]*>)?<<<(.+?), ([\w:]+)(?:, .+?)?>>>\((.*?)\);", re.DOTALL)
_CLUSTER = re.compile(r"__cluster_dims__\((\w+)(?:, 1)*\)[^;{]*?\b((?!__)\w+)\(")
_SHARED = re.compile(r"__shared__ (\w+) (\w+)((?:\[[^]]+\])*);")


def build(side, folder, home=CHAPTER):
    """The library of a .cu side of chapter 10, or of a source in `home`, in `folder`: a copy of its own of the one in the build cache."""
    texts = texts_of(side, home)
    clusters = {kernel: size for text in texts.values() for size, kernel in _CLUSTER.findall(text)}
    for file, text in texts.items():
        (folder / file).write_text(translated(text, clusters))
    library = folder / f"{side}.so"
    key = hashlib.sha256("\0".join([*FLAGS, _fixed_part(), *(f"{file}\n{(folder / file).read_text()}" for file in sorted(texts))]).encode())
    made = BUILD_CACHE / f"on_cpu_{Path(side).stem}-{key.hexdigest()[:16]}.so"
    if not made.exists():
        BUILD_CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", *FLAGS, f"-I{STAND_INS}", f"-I{ROOT}", "-x", "c++", folder / side, "-o", library], check=True)
        shutil.copy(library, unfinished := made.with_suffix(f".{os.getpid()}"))
        unfinished.replace(made)
    shutil.copy(made, library)
    return Emulated(ctypes.CDLL(str(library)))


def host_library(source, folder, home=CHAPTER):
    """What g++ makes, in `folder`, of C++ `source` that includes the host code of `home`; the test is skipped where there is no g++."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (folder / "host.cpp").write_text(source)
    flags = ("-std=c++17", "-w", "-shared", "-fPIC", f"-I{STAND_INS}", f"-I{home}", f"-I{ROOT}")
    subprocess.run(["g++", *flags, folder / "host.cpp", "-o", folder / "host.so"], check=True)
    return ctypes.CDLL(str(folder / "host.so"))


@functools.cache
def _fixed_part():
    """What all sides are built from beside their own texts: the compiler, the stand-ins and the headers of common/cuda."""
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    headers = [*STAND_INS.rglob("*.h*"), *STAND_INS.rglob("*.cuh"), *(ROOT / "common/cuda").rglob("*.cuh")]
    return version + "".join(path.read_text() for path in sorted(headers))


def texts_of(side, home=CHAPTER):
    """The sources of a side that are its folder's own: the side, and what it and they include."""
    texts, left = {}, [side]
    while left:
        file = left.pop()
        texts[file] = (home / file).read_text()
        left += [name for name in re.findall(r'#include "([\w.]+)"', texts[file]) if name not in texts and (home / name).is_file()]
    return texts


def translated(text, clusters=()):
    """C++: launches are calls, shared memory is the machine's, and a wait for products knows its line."""
    text = _LAUNCH.sub(lambda found: _launch(*found.groups(""), clusters), text)
    text = re.sub(r"extern __shared__ .* bytes\[\];", "unsigned char* const bytes = on_cpu::shared_memory;", text)
    text = re.sub(
        r"__shared__ alignas\(SWIZZLE_PERIOD\) unsigned char (\w+)\[([^]]+)\], (\w+)\[[^]]+\];",
        r"unsigned char *const \1 = on_cpu::shared_memory, *const \3 = \1 + \2;",
        text,
    )
    text = _SHARED.sub(
        r"using \2_type = \1\3; static const size_t \2_at = on_cpu::place(sizeof(\2_type), alignof(\2_type)); "
        r"auto& \2 = *reinterpret_cast<\2_type*>(on_cpu::shared_memory + \2_at);",
        text,
    )
    return re.sub(r"wgmma_wait<(\d)>\(\)", r"wgmma_wait_\1", text)


def _launch(kernel, template, blocks, threads, arguments, clusters):
    size = dict(clusters).get(kernel, 1)
    return f"on_cpu::launch({blocks}, {threads}, [=] {{ {kernel}{template}({arguments}); }}, {size});"


class Emulated:
    """A side that was built: `launch` runs it and says what was wrong, `run` gives the product of one that multiplies."""

    def __init__(self, library):
        self._library = library
        library.on_cpu_set.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        library.error_text.restype = ctypes.c_char_p

    def launch(self, *arguments, seed=1, laziness="by chance", multiprocessors=2, skipped=""):
        """One launch, of tensors and ints, on a machine of so many multiprocessors. Raises RuntimeError for what a program must not do."""
        self._library.on_cpu_set(seed, LAZINESS[laziness], multiprocessors, skipped.encode())
        bound = [ctypes.c_void_p(each.data_ptr()) if isinstance(each, torch.Tensor) else ctypes.c_int(each) for each in arguments]
        if code := self._library.launch(*bound, None):
            raise RuntimeError(self._library.error_text(code).decode())

    def run(self, inputs, shape, **how):
        """The product, on a machine as `launch` has it."""
        m, n, k = (shape[name] for name in "mnk")
        c = torch.full((m, n), torch.nan, dtype=torch.bfloat16)
        self.launch(inputs["a"], inputs["b"], c, m, n, k, **how)
        return c


def inputs_of(workload, shape):
    """The inputs of a workload at a shape."""
    return Inputs(workload, shape, 1, CPU, ROOT).values


def is_right(workload, c, values):
    """Whether `c` is the product of `values`."""
    reference = workload.reference(values["a"].double(), values["b"].double())
    return accepts(workload.tolerance("optimized"), [c], [reference])


def assert_right_however_late(side, workload, shape, **how):
    """Copies and products may end at once, as late as they may, or by chance: the side's answer is right."""
    values = inputs_of(workload, shape)
    for laziness in LAZINESS:
        assert is_right(workload, side.run(values, shape, laziness=laziness, **how), values), laziness


def waits(file, pattern):
    """The lines of a file of the chapter that wait, as file:line and their text."""
    lines = (CHAPTER / file).read_text().splitlines()
    return [(f"{file}:{number}", line.strip()) for number, line in enumerate(lines, 1) if re.search(pattern, line)]


def shapes_of(workload, rounds):
    """The shapes that a CPU can multiply: those that are checked, but for large ones, and `rounds`, at which rings go round."""
    return [*(shape for shape in workload.check_at if shape["m"] * shape["n"] < 1 << 20), rounds]


def skip_without_compiler():
    """Skip the test where nothing can be built."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
