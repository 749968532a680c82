"""Machine code is told by kernel and architecture, as the compiler made it, and read only once."""

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.build import sass
from common.python.build.nvcc import build
from common.python.build.sass import Unreadable, base_name, demangled, read_code
from common.python.machine.description import find_tool
from common.python.session.session import BUILD_CACHE
from tests.support.probes import needs_nvcc

SIDE = """// Two kernels, one of which spills.
#include "common/cuda/launch.cuh"

namespace {
template <int N>
__global__ void __launch_bounds__(1024, 2) spilling(const float* x, float* y) {
    float kept[N];
#pragma unroll
    for (int k = 0; k < N; k++) kept[k] = x[k * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) y[k * 1024 + threadIdx.x] = kept[k];
}
}  // namespace
__global__ void plain(float* y) {
    __shared__ float all[256];
    all[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = all[255 - threadIdx.x];
}

LAUNCH(const float* x, float* y, cudaStream_t stream) {
    spilling<64><<<1, 1024, 0, stream>>>(x, y);
    plain<<<1, 256, 0, stream>>>(y);
    return cudaGetLastError();
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("side")
    (folder / "optimized_two.cu").write_text(SIDE)
    return build(folder / "optimized_two.cu", ["90a", "100a"], cache=BUILD_CACHE, root=folder)


@needs_nvcc
def test_a_library_has_each_kernel_for_each_architecture_with_what_it_takes(built):
    kernels = {(base_name(kernel.name), kernel.architecture): kernel for kernel in read_code(built.library, built.log)}
    assert set(kernels) == {(name, architecture) for name in ("spilling", "plain") for architecture in ("90a", "100a")}
    for architecture in ("90a", "100a"):
        plain, spilling = kernels["plain", architecture], kernels["spilling", architecture]
        assert (plain.shared_bytes, plain.stack_bytes, plain.spill_bytes) == (1024, 0, 0)
        assert spilling.name == "void (anonymous namespace)::spilling<64>(float const*, float*)"
        assert spilling.registers == 32
        assert spilling.stack_bytes > 0
        # A spilled register lies in the frame once, and is stored and loaded.
        assert spilling.spill_bytes > spilling.stack_bytes
        assert any(text.startswith("STL") for text in spilling.instructions)
        assert not any(text.startswith(("STL", "@")) for text in plain.instructions)
        assert "EXIT" in plain.instructions


@needs_nvcc
def test_without_a_log_the_stack_frame_stands_for_spills(built):
    assert all(kernel.spill_bytes == kernel.stack_bytes for kernel in read_code(built.library))


@pytest.fixture
def disassembled(monkeypatch):
    """The binaries that a disassembler was started for; one really is, for each command."""
    names, run, done = [], subprocess.run, {}

    def counting(command, **options):
        names.append(Path(command[-1]).name)
        return done.get(tuple(command)) or done.setdefault(tuple(command), run(command, **options))

    monkeypatch.setattr(sass, "subprocess", SimpleNamespace(run=counting, SubprocessError=subprocess.SubprocessError))
    return names


@needs_nvcc
def test_a_library_is_disassembled_once(built, tmp_path, disassembled):
    library = shutil.copy(built.library, tmp_path / "a.so")
    first = read_code(library)
    assert len(first) == 4
    read_code.cache_clear()
    assert read_code(library) == first
    assert disassembled == ["a.so"]


@needs_nvcc
def test_a_damaged_listing_is_replaced(built, tmp_path, disassembled):
    library = shutil.copy(built.library, tmp_path / "a.so")
    first = read_code(library)
    (listing,) = tmp_path.glob("a.so.*.sass")
    whole = listing.read_text()
    for damaged in (whole[: len(whole) // 2], whole.replace("plain", "faked"), whole.partition("\n")[2]):
        listing.write_text(damaged)
        read_code.cache_clear()
        assert read_code(library) == first
        assert listing.read_text() == whole
    assert disassembled == ["a.so"] * 4


@needs_nvcc
def test_a_cubin_tells_its_architecture_itself(tmp_path):
    source, cubin = tmp_path / "a.cu", tmp_path / "a.cubin"
    source.write_text("__global__ void fill(float* y) { *y = 1; }\n")
    subprocess.run([str(find_tool("nvcc")), "-cubin", "-arch=sm_100a", source, "-o", cubin], check=True)
    assert [kernel.architecture for kernel in read_code(cubin)] == ["100a"]


def test_what_is_not_machine_code_is_unreadable(tmp_path):
    (tmp_path / "a.so").write_text("no ELF")
    with pytest.raises(Unreadable, match=r"cuobjdump.*a\.so"):
        read_code(tmp_path / "a.so")


def test_without_a_disassembler_it_says_where_one_comes_from(tmp_path, monkeypatch):
    monkeypatch.setattr(sass, "find_tool", lambda _: None)
    with pytest.raises(Unreadable, match="pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"):
        read_code(tmp_path / "b.so")


@pytest.mark.parametrize(
    ("symbol", "name", "short"),
    [
        ("_Z9transposePKfPfii", "transpose(float const*, float*, int, int)", "transpose"),
        ("_ZN2at6native4copyILi4EEEvPf", "void at::native::copy<4>(float*)", "copy"),
        ("f", "f", "f"),  # to the demangler this is the type float
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void at::native::copy<4>(float*)", "void at::native::copy<4>(float*)", "copy"),
    ],
)
def test_names_are_those_that_profilers_print(symbol, name, short):
    assert demangled(symbol) == name
    assert base_name(name) == short
