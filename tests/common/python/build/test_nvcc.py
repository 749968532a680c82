"""A library is built once for all that goes into it, whole or not at all; a failed build says where."""

import ctypes
import importlib
import importlib.metadata
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.python.build import nvcc
from common.python.build.nvcc import CutlassMissing, NvccMissing, architectures_for, build
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.project import PROJECT_ROOT

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc") and not Path("/usr/local/cuda/bin/nvcc").exists(), reason="no nvcc to run")

# Stands in for nvcc where the cache is the subject: counts its builds and copies its command into the library.
FAKE_NVCC = """#!/bin/sh
if [ "$1" = --version ]; then cat "$0.version"; exit; fi
echo build >> "$0.builds"
test -z "$NVCC_APPEND_FLAGS" || exit 1
all="$*"
while [ "$1" != -o ]; do shift; done
printf half > "$2"
sleep 0.05
if [ -f "$0.dies" ]; then kill -KILL $$; fi
echo "$all" > "$2"
echo "ptxas info    : Used 8 registers"
"""


class Tree:
    """A tree with one side that includes two headers, one through the other, and a compiler."""

    def __init__(self, root: Path) -> None:
        self.root = root / "tree"
        self.cache = root / "cache"
        self.nvcc = root / "nvcc"
        self.nvcc.write_text(FAKE_NVCC)
        self.nvcc.chmod(0o755)
        self.release("13.0")
        self.write("ch01/side.cu", '#include "near.cuh"\n')
        self.write("ch01/near.cuh", '#pragma once\n  # include "shared/far.cuh"\n#include "near.cuh"\n#include "absent.cuh"\n')
        self.write("shared/far.cuh", "int far;\n")

    def release(self, version: str) -> None:
        Path(f"{self.nvcc}.version").write_text(version)
        nvcc._version.cache_clear()

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def build(self, *, root: Path | None = None, architectures=("90a",), flags=()) -> nvcc.Built:
        root = root or self.root
        return build(root / "ch01/side.cu", architectures, flags=flags, cache=self.cache, root=root)

    @property
    def builds(self) -> int:
        return len(Path(f"{self.nvcc}.builds").read_text().splitlines())


@pytest.fixture
def tree(tmp_path, monkeypatch):
    tree = Tree(tmp_path)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: tree.nvcc)
    return tree


@pytest.mark.parametrize(
    ("needs", "capability", "expected"),
    [
        ((), None, ("90a", "100a")),
        (("wgmma",), None, ("90a",)),
        (("tcgen05", "gpus 2"), None, ("100a", "103a")),
        (("tma", "nvme"), None, ("90a", "100a")),
        ((), (8, 9), ("89",)),
        (("tma",), (9, 0), ("90a",)),
        (("tcgen05",), (10, 3), ("103a",)),
        (("fp4",), (12, 0), ("120a",)),
        (("tcgen05",), (9, 0), ("100a", "103a")),
        (("tcgen05",), (10, 0), ("100a",)),
    ],
)
def test_a_side_is_built_for_this_device_or_else_for_what_it_needs(needs, capability, expected):
    assert architectures_for(needs, capability) == expected


def test_needs_that_no_supported_architecture_meets_are_an_error():
    with pytest.raises(BenchmarkError, match="'wgmma, tcgen05'; expected what one of 90a, 100a has"):
        architectures_for(("wgmma", "tcgen05"), None)
    with pytest.raises(BenchmarkError, match="wgma"):
        architectures_for(("wgma",), (9, 0))


def test_no_nvcc_is_a_skip_and_not_a_failure(tree, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NvccMissing) as caught:
        tree.build()
    assert caught.value.status is Status.SKIPPED


def test_the_second_build_is_the_first_one(tree):
    first, second = tree.build(), tree.build()
    assert (first.cached, second.cached, tree.builds) == (False, True, 1)
    assert second.library == first.library
    assert second.log == first.log == "ptxas info    : Used 8 registers\n"
    assert second.seconds < first.seconds
    command = first.library.read_text()
    assert "-gencode=arch=compute_90a,code=sm_90a" in command
    assert "-cudart static" in command


def test_the_same_contents_elsewhere_are_the_same_library(tree):
    first = tree.build()
    shutil.copytree(tree.root, tree.root.parent / "other")
    assert tree.build(root=tree.root.parent / "other") == nvcc.Built(
        first.library, ("90a",), pytest.approx(0, abs=1), cached=True, log=first.log
    )


@pytest.mark.parametrize(
    "changed", ["ch01/side.cu", "ch01/near.cuh", "shared/far.cuh", "ch01/absent.cuh", "flags", "architectures", "nvcc"]
)
def test_all_that_goes_into_a_library_makes_a_new_one(tree, changed):
    first = tree.build()
    options = {"flags": {"flags": ("-maxrregcount=32",)}, "architectures": {"architectures": ("90a", "100a")}}
    if changed == "nvcc":
        tree.release("13.1")
    elif changed not in options:
        path = tree.root / changed
        tree.write(changed, (path.read_text() if path.exists() else "") + "// changed\n")
    second = tree.build(**options.get(changed, {}))
    assert second.library != first.library
    assert (second.cached, tree.builds) == (False, 2)


def test_a_header_beside_the_file_goes_before_one_of_the_tree(tree):
    first = tree.build()
    tree.write("near.cuh", "int unused;\n")
    assert tree.build().library == first.library


def test_flags_from_the_environment_do_not_reach_a_library(tree, monkeypatch):
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--use_fast_math")
    assert "fast_math" not in tree.build().library.read_text()


def test_a_killed_build_leaves_no_library(tree):
    dies = Path(f"{tree.nvcc}.dies")
    dies.touch()
    with pytest.raises(SideFailure, match=r"ch01/side.cu: nvcc ended with code -9 and named no error"):
        tree.build()
    assert list(tree.cache.glob("*.so")) == []
    dies.unlink()
    assert not tree.build().cached


@pytest.fixture
def cutlass(tmp_path, monkeypatch):
    """Installs a package nvidia-cutlass of a version, in the place of the one that may be installed."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)

    def install(version):
        shutil.rmtree(site, ignore_errors=True)
        (site / f"nvidia_cutlass-{version}.dist-info").mkdir(parents=True)
        (site / f"nvidia_cutlass-{version}.dist-info/METADATA").write_text(f"Name: nvidia-cutlass\nVersion: {version}\n")
        importlib.invalidate_caches()
        return site / "cutlass_library/source"

    return install


@pytest.mark.parametrize("header", ["cutlass/cutlass.h", "cute/tensor.hpp"])
def test_a_side_that_includes_cutlass_gets_its_headers_and_a_new_version_makes_a_new_library(tree, cutlass, header):
    headers = cutlass("4.2.0")
    tree.write("shared/far.cuh", f"#include <{header}>\n")  # two includes away from the side
    first, again = tree.build(), tree.build()
    assert all(f"--system-include={headers / folder} " in first.library.read_text() for folder in ("include", "tools/util/include"))
    assert again.cached
    cutlass("4.3.0")
    assert not tree.build().cached


def test_a_side_without_cutlass_is_the_same_library_with_any_or_none(tree, cutlass, monkeypatch):
    cutlass("4.2.0")
    tree.write("ch01/near.cuh", "#include <cuda/std/tuple>\n// cutlass/cutlass.h\n")
    assert "--system-include" not in tree.build().library.read_text()
    monkeypatch.setattr(importlib.metadata, "distribution", _none_installed)
    assert tree.build().cached


def test_no_cutlass_is_a_skip_that_names_the_package(tree, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distribution", _none_installed)
    tree.write("ch01/side.cu", "#include <cutlass/cutlass.h>\n")
    with pytest.raises(CutlassMissing) as caught:
        tree.build()
    assert caught.value.status is Status.SKIPPED
    assert caught.value.reason == "side.cu includes CUTLASS; needs the package nvidia-cutlass, without its dependencies"


def _none_installed(name):
    raise importlib.metadata.PackageNotFoundError(name)


def test_builds_that_race_all_get_a_whole_library(tree):
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: (made := tree.build().library, made.read_text()), range(4)))
    assert len({library for library, _ in built}) == 1
    assert all(text.endswith("side.cu\n") for _, text in built)
    assert sorted(path.suffix for path in tree.cache.iterdir()) == [".log", ".so"]


def test_an_unreadable_source_is_a_failed_build(tree):
    tree.write("ch01/side.cu", "").unlink()
    with pytest.raises(SideFailure, match=r"side\.cu.*expected a readable") as caught:
        tree.build()
    assert caught.value.status is Status.BUILD_FAILED


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        (
            '{tree}/ch01/side.cu(2): error: identifier "q" is undefined\n{tree}/side.cu(3): error: expected a ";"\n2 errors detected',
            'ch01/side.cu(2): error: identifier "q" is undefined (and 1 further error)',
        ),
        (
            "{tree}/ch01/side.cu:1:10: fatal error: nope.h: No such file or directory\ncompilation terminated.",
            "ch01/side.cu:1:10: fatal error: nope.h: No such file or directory",
        ),
        (
            "ptxas /tmp/x.ptx, line 23; error   : Unknown modifier '.foo'\nptxas fatal   : Ptx assembly aborted due to errors",
            "ch01/side.cu: ptxas /tmp/x.ptx, line 23; error : Unknown modifier '.foo'",
        ),
        ("nvcc fatal   : Unknown option '--nonsense'", "ch01/side.cu: nvcc fatal : Unknown option '--nonsense'"),
        (
            "/usr/bin/ld: cannot find -lcuda: No such file\ncollect2: error: ld returned 1 exit status",
            "ch01/side.cu: /usr/bin/ld: cannot find -lcuda: No such file",
        ),
    ],
)
def test_a_failed_build_gives_the_first_error_in_one_sentence(tree, printed, sentence):
    tree.nvcc.write_text(f"#!/bin/sh\ncat '{tree.nvcc}.printed' >&2\nexit 1\n")
    Path(f"{tree.nvcc}.printed").write_text(printed.replace("{tree}", str(tree.root)))
    with pytest.raises(SideFailure) as caught:
        tree.build()
    assert (caught.value.status, caught.value.reason) == (Status.BUILD_FAILED, sentence)


SIDE = """
#include "common/cuda/launch.cuh"
__global__ void fill(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 1; }
LAUNCH(float* y, int n, cudaStream_t stream) {
    fill<<<1, 32, 0, stream>>>(y, n);
    return cudaGetLastError();
}
"""


@needs_nvcc
def test_nvcc_builds_a_library_that_keeps_its_runtime_to_itself(tmp_path):
    source = tmp_path / "ch01" / "side.cu"
    source.parent.mkdir()
    source.write_text(SIDE)
    built = build(source, ("90a", "100a"), cache=tmp_path / "cache", root=tmp_path)
    assert "for 'sm_90a'" in built.log
    assert "for 'sm_100a'" in built.log
    assert "Used" in built.log
    printed = subprocess.run(["nm", "-D", "--defined-only", built.library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in printed.splitlines()}
    assert exported >= {"launch", "launch_signature", "error_text"}
    assert not [name for name in exported if name.startswith("cuda")]


@needs_nvcc
def test_the_headers_of_the_installed_cutlass_are_found(tmp_path):
    try:
        version = importlib.metadata.version("nvidia-cutlass")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no package nvidia-cutlass")
    source = tmp_path / "ch01" / "side.cu"
    source.parent.mkdir()
    source.write_text('#include <cutlass/version.h>\nextern "C" int version() { return CUTLASS_MAJOR * 100 + CUTLASS_MINOR; }\n')
    built = build(source, ("90a",), cache=tmp_path / "cache", root=tmp_path)
    major, minor = version.split(".")[:2]
    assert ctypes.CDLL(str(built.library)).version() == int(major) * 100 + int(minor)


@needs_nvcc
def test_nvcc_names_file_line_and_error(tmp_path):
    source = tmp_path / "ch01" / "side.cu"
    source.parent.mkdir()
    source.write_text(SIDE.replace("= 1", "= one"))
    with pytest.raises(SideFailure) as caught:
        build(source, ("90a",), cache=tmp_path / "cache", root=tmp_path)
    assert caught.value.reason == 'ch01/side.cu(3): error: identifier "one" is undefined'


def test_building_imports_no_torch():
    code = "import sys, common.python.build.nvcc; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT_ROOT, check=False).returncode == 0
