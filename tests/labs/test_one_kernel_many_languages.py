"""labs/one_kernel_many_languages: committed cubins are what their sources became, sides pass what they take, and the page's table is so."""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest
import torch

from common.python.build.nvcc import build
from common.python.build.sass import read_code
from common.python.machine.description import find_tool, version_of
from common.python.pairs.directives import read_directives
from common.python.prove.triton import read_cubins
from common.python.session.session import BUILD_CACHE
from tests.pairs.harness import Harness
from tests.pairs.tree import Side, pairs_of
from tests.support.cuda_sides import skip_without_tools
from tests.support.teeth import ROOT
from tools.checks.source import Source

LAB = ROOT / "labs/one_kernel_many_languages"
SIDE = "optimized_one_kernel_many_languages"
ENTRIES = json.loads((LAB / "cubins.json").read_text())
LANGUAGES = ("cute_dsl", "cutile")

needs_tools = pytest.mark.skipif(find_tool("cuobjdump") is None or find_tool("nvdisasm") is None, reason="no cuobjdump and nvdisasm")
needs_helion = pytest.mark.skipif(importlib.util.find_spec("helion") is None, reason="needs the Python package helion")


@pytest.fixture
def lab(monkeypatch):
    """Imports a module of the lab, anew for each test."""
    monkeypatch.syspath_prepend(str(LAB))
    for path in LAB.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return importlib.import_module


def test_every_cubin_is_entered_and_of_both_architectures():
    expected = {f"{SIDE}_{language}.{architecture}.cubin" for language in LANGUAGES for architecture in ("sm_90a", "sm_100a")}
    assert set(ENTRIES) == expected == {path.name for path in LAB.glob("*.cubin")}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_cubin_and_its_source_are_as_entered(name):
    entry = ENTRIES[name]
    assert hashlib.sha256((LAB / name).read_bytes()).hexdigest() == entry["sha256"]
    for source, digest in entry["source"].items():
        edited = f"{source} was edited: compile_ahead.py makes its cubins anew"
        assert hashlib.sha256((LAB / source).read_bytes()).hexdigest() == digest, edited


@needs_tools
@pytest.mark.parametrize("name", ENTRIES)
def test_a_cubin_has_the_one_kernel_for_the_architecture_of_its_name(name, lab):
    (kernel,) = read_cubins([str(LAB / name)])
    assert f".sm_{kernel.architecture}.cubin" in name
    assert kernel.name == ENTRIES[name]["kernel"] == lab("compile_ahead").kernel_of((LAB / name).read_bytes())


@needs_tools
@pytest.mark.parametrize("name", ENTRIES)
def test_a_side_passes_what_its_kernel_takes(name, lab, monkeypatch):
    """The sizes of arguments in bytes are the machine code's, tensors by address and numbers as 32-bit integers."""
    side = lab(name.partition(".")[0])
    calls = []
    monkeypatch.setattr(side, "load", lambda _file: lambda **call: calls.append(call))
    side.prepare(torch.ones(3, 136, dtype=torch.bfloat16), torch.ones(136, dtype=torch.bfloat16))()
    (call,) = calls
    assert call["grid"] == (3, 1, 1)
    listed = subprocess.run([find_tool("cuobjdump"), "-elf", LAB / name], capture_output=True, text=True, check=True).stdout
    taken = {int(ordinal, 16): int(size, 16) for ordinal, size in re.findall(r"Ordinal : (\w+)\s+Offset\s+: \w+\s+Size\s+: (\w+)", listed)}
    assert [8 if isinstance(value, torch.Tensor) else 4 for value in call["args"]] == [taken[at] for at in sorted(taken)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [12, 8200])
def test_a_side_refuses_rows_that_its_kernel_cannot_take(language, width, lab):
    side = lab(f"{SIDE}_{language}")
    with pytest.raises(ValueError, match=f"width: found {width}; expected a multiple of 8 of at most 8192"):
        side.prepare(torch.ones(1, width), torch.ones(width))


def test_a_side_finds_the_cubin_of_its_gpu(lab):
    code, kernel = lab("shared_cubin").cubin_for(LAB / f"{SIDE}_cutile.py", (10, 0))
    assert (code, kernel) == ((LAB / f"{SIDE}_cutile.sm_100a.cubin").read_bytes(), "quantized_norm")


def test_a_gpu_without_a_cubin_is_named(lab):
    with pytest.raises(RuntimeError, match=r"cutile\.sm_120a\.cubin: found none; expected a GPU of compute capability 9\.0 or 10\.0"):
        lab("shared_cubin").cubin_for(LAB / f"{SIDE}_cutile.py", (12, 0))


def test_a_cubin_that_was_changed_is_refused(lab, tmp_path):
    cubin = tmp_path / f"{SIDE}_cutile.sm_90a.cubin"
    cubin.write_bytes((LAB / cubin.name).read_bytes() + b"\0")
    with pytest.raises(RuntimeError, match=r"found another digest than in cubins\.json"):
        lab("shared_cubin").cubin_for(tmp_path / f"{SIDE}_cutile.py", (9, 0))


@pytest.mark.parametrize(("language", "package"), [("cute_dsl", "nvidia-cutlass-dsl"), ("cutile", "cuda-tile")])
def test_a_compiler_that_is_not_installed_is_named(language, package, lab):
    ahead = lab("compile_ahead")
    if not ahead.missing(language):
        pytest.skip(f"{package} is installed")
    with pytest.raises(SystemExit, match=f"the Python package {package} is not installed; expected it \\(pip install"):
        ahead.main([language])


# The interpreter has no functions of CUDA's libdevice, of which Helion takes the root.
INTERPRETED = """
import torch
import triton.language as tl
from torch._inductor.runtime.triton_compat import libdevice
from common.python.child.sides.triton import mend_interpreter
mend_interpreter()
libdevice.rsqrt = lambda value: tl.rsqrt(value)
from optimized_one_kernel_many_languages_helion import prepare
from workload_one_kernel_many_languages import reference
for rows, width in ((1, 8), (3, 136), (33, 1000)):
    x, weight = torch.randn(rows, width).bfloat16(), 0.5 + torch.rand(width).bfloat16()
    y, scale = prepare(x, weight)()
    expected_y, expected_scale = reference(x.double(), weight.double())
    torch.testing.assert_close(scale.double(), expected_scale, rtol=2**-7, atol=0)
    torch.testing.assert_close(y.double(), expected_y, rtol=0.07, atol=2**-9)
print("right")
"""


@needs_helion
@pytest.mark.slow
def test_helion_is_right_in_the_interpreter():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], cwd=LAB, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr[-2000:]


# By language: the files of its kernel and its launch, and of which compiler the table's machine code is.
FILES = {
    "Triton": [f"{SIDE}.py"],
    "CUDA C++": [f"{SIDE}_cuda.cu"],
    "Gluon": [f"{SIDE}_gluon.py"],
    "Helion": [f"{SIDE}_helion.py"],
    "CuTe DSL": [f"{SIDE}_cute_dsl.py", "kernel_cute_dsl.py"],
    "cuTile": [f"{SIDE}_cutile.py", "kernel_cutile.py"],
}
BYTES = {".64": 8, ".128": 16}


@pytest.fixture(scope="module")
def harness():
    with Harness() as started:
        yield started


def kernel_of(language, harness):
    """The kernel of a language for sm_90a, as the compiler of the table made it; skips where that compiler is not here."""
    file = LAB / FILES[language][0]
    if language in ("CuTe DSL", "cuTile"):
        (kernel,) = read_cubins([str(file.with_suffix(".sm_90a.cubin"))])
    elif file.suffix == ".cu":
        if not version_of("nvcc").startswith("13.0"):
            pytest.skip(f"nvcc {version_of('nvcc')} is not that of the table")
        built = build(file, ("90a",), flags=read_directives(file).nvcc, cache=BUILD_CACHE, root=ROOT)
        (kernel,) = read_code(built.library, built.log)
    else:
        if language == "Helion" and not importlib.util.find_spec("helion"):
            pytest.skip("needs the Python package helion")
        (pair,) = [pair for pair in pairs_of() if pair.sides["optimized"] == file]
        (kernel,) = read_cubins(harness.compile(Side(pair, "optimized"), {"rows": 16384, "width": 8192}, (9, 0)).cubins)
    return kernel


def row_of(language, kernel):
    """The table's row: lines without comments, and what a thread has and does."""
    lines = sum(bool(line.strip()) for name in FILES[language] for line in Source(name, (LAB / name).read_text()).code.splitlines())

    def accesses(mnemonic):
        widths = [BYTES[width] for text in kernel.instructions for width in re.findall(rf"^{mnemonic}\.E(\.64|\.128)\b", text)]
        (width,) = set(widths)
        return f"{len(widths)} x {width} bytes"

    barriers = sum(text.startswith("BAR.SYNC") for text in kernel.instructions)
    cells = [language, lines, kernel.registers, len(kernel.instructions), accesses("LDG"), accesses("STG"), barriers]
    return f"| {' | '.join(map(str, cells))} |"


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("language", FILES)
def test_the_row_of_the_page_is_so(language, harness):
    skip_without_tools()
    (stated,) = [line for line in (LAB / "README.md").read_text().splitlines() if line.startswith(f"| {language} |")]
    assert stated == row_of(language, kernel_of(language, harness))
