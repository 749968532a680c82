"""What a signature may say, what is bound to it, and that a step really passes it, on a CPU stand-in for the CUDA runtime."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from common.python.build.nvcc import build
from common.python.child.sides.cuda import (
    Argument,
    CudaSide,
    Names,
    check_source,
    parse_signature,
    read_signatures,
    source_signature,
)
from common.python.errors import SideFailure, Status
from common.python.pairs.directives import Directives, read_directives
from common.python.pairs.workload import Spec, Workload
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE

ROOT = PROJECT_ROOT
HOST_RUNTIME = """
#pragma once
#include <cstdint>
#define __host__
#define __device__
typedef int cudaError_t;
typedef void* cudaStream_t;
inline const char* cudaGetErrorString(int code) { return code == 700 ? "an illegal memory access was encountered" : "?"; }
"""

WORKLOAD = Workload(
    inputs=lambda rand, rows: {},
    outputs=lambda rows, **_: {"y": Spec((rows, 2), torch.float32), "total": Spec((1,), torch.int64)},
    reference=lambda x: x,
    time_at={"rows": 4, "scale": 0.5, "negate": True, "big": 2**40, "name": "x"},
    check_at=({"rows": 3, "scale": 2.0, "negate": False, "big": 1, "name": "x"},),
    work=lambda rows: {},
    rtol=0,
    atol=0,
    in_place=("counter",),
)
SHAPE = {"rows": 4, "scale": 0.5, "negate": True, "big": 2**40, "name": "x"}


def inputs():
    return {
        "x": torch.arange(8, dtype=torch.float32).reshape(4, 2),
        "counter": torch.zeros(1, dtype=torch.int32),
        "codes": torch.zeros(4, dtype=torch.float8_e4m3fn),
        "unknown": torch.zeros(4, dtype=torch.complex64),
        "folder": Path("data"),
    }


def source(folder, text):
    path = folder / "ch01" / "side.cu"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def check(folder, signature, rest="", scratch="float partial"):
    path = source(folder, f"// scratch: {scratch}[rows * 3]\nLAUNCH({signature}) {{}}\n{rest}")
    return check_source(path, Names.of(WORKLOAD, read_directives(path), inputs(), SHAPE))


def reason(call, *arguments):
    with pytest.raises(SideFailure) as caught:
        call(*arguments)
    assert caught.value.status is Status.BUILD_FAILED
    return caught.value.reason


def test_arguments_are_read_whatever_their_spelling():
    text = "const float *x, float const*__restrict__ w, unsigned char* const m, void** state, long long n, cudaStream_t stream"
    assert parse_signature(text, "side.cu") == (
        Argument("float", "x", pointer=True, constant=True),
        Argument("float", "w", pointer=True, constant=True),
        Argument("unsigned char", "m", pointer=True),
        Argument("void*", "state", pointer=True),
        Argument("long long", "n"),
        Argument("cudaStream_t", "stream"),
    )


@pytest.mark.parametrize("text", ["", "int", "float x[]", "float& x", "std::vector<float> x", "float* x,", "* x"])
def test_what_is_no_plain_argument_is_named(text):
    assert "side.cu: found argument `" in reason(parse_signature, text, "side.cu")


def test_the_signature_is_found_among_comments_and_over_lines(tmp_path):
    text = "// LAUNCH(int a)\n/* LAUNCH(int b)\n*/\n  LAUNCH(const float* x,  // the input\n         int rows,\n  cudaStream_t stream) {}\n"
    assert source_signature(source(tmp_path, text)) == "const float* x, int rows, cudaStream_t stream"


@pytest.mark.parametrize("text", ["", "LAUNCH(int a) {}\nLAUNCH(int b) {}\n"])
def test_a_file_with_no_launch_or_two_is_refused(tmp_path, text):
    path = source(tmp_path, text)
    assert reason(source_signature, path).startswith(f"ch01/side.cu: found {text.count('LAUNCH')} LAUNCH(...); expected one")


GOOD = "const float* x, float* y, int64_t* total, int* counter, float* partial, int rows, float scale, bool negate, int64_t big"


def test_the_signature_of_an_included_side(tmp_path):
    (tmp_path / "ch02").mkdir()
    (tmp_path / "ch02/lent.cu").write_text("PREPARE(int rows, void** state) {}\nLAUNCH(float* y, int rows, cudaStream_t stream) {}")
    path = source(tmp_path, '// LAUNCH() is in the other.\n#include "ch02/lent.cu"\n#include "ch02/absent.cu"')
    assert source_signature(path) == "float* y, int rows, cudaStream_t stream"
    assert read_signatures(path) == read_signatures(tmp_path / "ch02/lent.cu")
    assert "found 2 LAUNCH" in reason(source_signature, source(tmp_path, '#include "ch02/lent.cu"\nLAUNCH(float* y) {}'))


def test_every_kind_of_name_can_be_bound(tmp_path):
    signatures = check(tmp_path, f"{GOOD}, const __nv_fp8_e4m3* codes, cudaStream_t stream")
    assert [argument.name for argument in signatures.launch][:3] == ["x", "y", "total"]


@pytest.mark.parametrize(
    ("found", "instead", "expected"),
    [
        ("const float* x", "const float4* x", "found argument `const float4* x`; expected `const float* x`, its element type"),
        ("const float* x", "const double* x", "expected `const float* x`"),
        ("const float* x", "const void* x", "expected `const float* x`"),
        ("const float* x", "float* x", "expected `const float* x`, an input that is not in_place"),
        ("const float* x", "const float* z", "expected const inputs among ['codes', 'counter', 'unknown', 'x']"),
        ("const float* x", "const float* folder", "expected const inputs among"),
        ("const float* x", "const float* unknown", "expected `const torch.complex64* unknown`"),
        ("float* y", "const float* y", "expected `float* y`, which the side writes"),
        ("float* y", "int* y", "expected `float* y`"),
        ("float* y, ", "", "found no argument for output 'y' in LAUNCH; expected `float* y`"),
        ("int* counter", "float* counter", "expected `int* counter`"),
        ("float* partial", "double* partial", "expected `float* partial`"),
        ("int rows", "float rows", "expected `int rows` or `int32_t rows` or `int64_t rows`"),
        ("int rows", "int columns", "expected scalars among ['big', 'name', 'negate', 'rows', 'scale']"),
        ("int rows", "int x", "expected scalars among"),
        ("int64_t big", "int big", "found argument `int big` for big=1099511627776; expected `int64_t big` or `long long big`"),
        ("bool negate", "int negate", "expected `bool negate`"),
        ("float scale", "int scale", "expected `float scale` or `double scale`"),
        ("float scale", "float name", "expected no argument, since it is not a number"),
        (", cudaStream_t stream", "", "found 0 `cudaStream_t stream` in LAUNCH; expected one"),
        ("cudaStream_t stream", "cudaStream_t stream, cudaStream_t stream", "found 2 `cudaStream_t stream`"),
        ("cudaStream_t stream", "cudaStream_t stream, void* state", "expected a PREPARE that makes it"),
        ("cudaStream_t stream", "cudaStream_t stream, void** state", "found argument `void** state`"),
    ],
)
def test_a_mismatch_names_file_argument_and_what_was_expected(tmp_path, found, instead, expected):
    signature = f"{GOOD}, cudaStream_t stream"
    assert found in signature
    text = reason(check, tmp_path, signature.replace(found, instead))
    assert text.startswith("ch01/side.cu: ")
    assert expected in text


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("PREPARE(int rows) {}", "found `int rows` last in PREPARE; expected `void** state`"),
        ("PREPARE(int cols, void** state) {}", "found argument `int cols`"),
        ("FINISH(void* state) {}", "expected FINISH(void* state) and a PREPARE"),
        ("PREPARE(void** state) {}\nFINISH(int rows) {}", "found FINISH(int rows)"),
        ("PREPARE(void** state) {}\nPREPARE(void** state) {}", "found 2 PREPARE(...)"),
    ],
)
def test_a_wrong_prepare_or_finish_is_refused(tmp_path, rest, expected):
    assert expected in reason(check, tmp_path, f"{GOOD}, cudaStream_t stream", rest)


@pytest.mark.parametrize(
    ("scratch", "expected"),
    [
        ("float4 partial", "found scratch `float4 partial`; expected an element type among float, "),
        ("float x", "found scratch 'x'; expected"),
    ],
)
def test_scratch_has_elements_and_a_name_of_its_own(tmp_path, scratch, expected):
    assert expected in reason(check, tmp_path, f"{GOOD}, cudaStream_t stream", "", scratch)


def test_prepare_makes_the_state_that_launch_takes(tmp_path):
    signatures = check(tmp_path, f"{GOOD}, void* state, cudaStream_t stream", "PREPARE(const float* x, void** state) {}\n")
    assert (len(signatures.prepare), signatures.finishes) == (2, False)


# Every argument leaves a trace in an output, and every call in the state.
SIDE = """
// scratch: float partial[rows * 3]
#include "common/cuda/launch.cuh"
struct State { int launches; int64_t* total; };
PREPARE(int64_t* total, cudaStream_t stream, void** state) {
    *state = new State{0, total};
    return stream == cudaStream_t(11) ? 0 : 1;
}
LAUNCH(const float* x, float* y, int64_t* total, int* counter, float* partial, int rows, float scale,
       bool negate, int64_t big, void* state, cudaStream_t stream) {
    if (stream != cudaStream_t(22)) return 700;
    for (int i = 0; i < 3 * rows; i++) partial[i] = scale;
    for (int i = 0; i < 2 * rows; i++) y[i] = (negate ? -1 : 1) * x[i] * partial[i % (3 * rows)];
    *counter += 1;
    *total = big + ++static_cast<State*>(state)->launches;
    return 0;
}
FINISH(void* state) {
    *static_cast<State*>(state)->total = -1;
    delete static_cast<State*>(state);
    return 0;
}
"""


def compiled(folder, path):
    (folder / "cuda_runtime.h").write_text(HOST_RUNTIME)
    library = folder / "side.so"
    command = ["g++", "-shared", "-fPIC", f"-I{folder}", f"-I{ROOT}", "-x", "c++", str(path), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++ to build the stand-in with")
    folder = tmp_path_factory.mktemp("built")
    return compiled(folder, source(folder, SIDE))


@pytest.fixture
def host_side(built, tmp_path):
    path = source(tmp_path, SIDE)
    return CudaSide(path, built, WORKLOAD, read_directives(path))


def test_a_step_passes_every_argument(host_side):
    values = inputs()
    stream = [11]
    step = host_side.prepare(values, SHAPE, lambda: stream[-1])
    stream.append(22)
    y, total = step()
    assert torch.equal(y, -0.5 * values["x"])
    assert (values["counter"].item(), total.item()) == (1, 2**40 + 1)
    values["x"] += 1
    assert step()[0].data_ptr() == y.data_ptr()
    assert torch.equal(y, -0.5 * values["x"])
    assert total.item() == 2**40 + 2
    assert [tuple(tensor.shape) for tensor in host_side.workspace()] == [(4, 2), (1,), (12,)]
    assert host_side.workspace()[0].data_ptr() == y.data_ptr()


def test_finish_runs_once_for_every_prepare(host_side):
    host_side.close()
    streams = iter([11, 22, 11, 22])
    total = host_side.prepare(inputs(), SHAPE, lambda: next(streams))()[1]
    again = host_side.prepare(inputs(), SHAPE, lambda: next(streams))()[1]
    assert (total.item(), again.item()) == (-1, 2**40 + 1)
    host_side.close()
    assert again.item() == -1
    again.zero_()
    host_side.close()
    assert again.item() == 0


def test_a_nonzero_code_is_a_failed_launch(host_side):
    step = host_side.prepare(inputs(), SHAPE, lambda: 11)
    with pytest.raises(SideFailure) as caught:
        step()
    assert caught.value.status is Status.LAUNCH_FAILED
    assert caught.value.reason == "ch01/side.cu: launch returned 700 (an illegal memory access was encountered)"
    with pytest.raises(SideFailure, match=r"ch01/side.cu: prepare returned 1 \(\?\)"):
        host_side.prepare(inputs(), SHAPE, lambda: 33)


def test_what_cannot_be_bound_stops_prepare(host_side):
    assert "expected `const __half* x`" in reason(host_side.prepare, inputs() | {"x": torch.zeros(4, 2).half()}, SHAPE)
    strided = inputs() | {"x": torch.zeros(2, 4).T}
    assert "found 'x' with strides (1, 4); expected it to be contiguous" in reason(host_side.prepare, strided, SHAPE)


def test_a_library_that_is_not_the_source_is_refused(built, tmp_path):
    path = source(tmp_path, SIDE.replace("int rows, float scale", "float scale, int rows"))
    assert "its library was built as launch(const float* x, float* y" in reason(CudaSide, path, built, WORKLOAD, Directives())


def test_a_library_without_the_header_or_that_does_not_load_is_refused(built, tmp_path):
    bare = compiled(tmp_path, source(tmp_path, 'extern "C" int launch() { return 0; }\n'))
    path = source(tmp_path, SIDE)
    assert "expected it to include common/cuda/launch.cuh" in reason(CudaSide, path, bare, WORKLOAD, Directives())
    (tmp_path / "text.so").write_text("no library")
    assert "its library cannot be loaded" in reason(CudaSide, path, tmp_path / "text.so", WORKLOAD, Directives())


@pytest.mark.skipif(not shutil.which("nvcc") or torch.cuda.is_available(), reason="needs nvcc, and no GPU")
def test_without_a_gpu_a_real_launch_fails_with_the_runtimes_words(tmp_path):
    text = '#include "common/cuda/launch.cuh"\n__global__ void fill(float* y) { *y = 1; }\n'
    path = source(tmp_path, text + "LAUNCH(float* y, cudaStream_t stream) { fill<<<1, 1, 0, stream>>>(y); return cudaGetLastError(); }\n")
    workload = Workload(
        inputs=lambda rand, n: {"x": rand.normal(n)},
        outputs=lambda n: {"y": Spec((n,), torch.float32)},
        reference=lambda x: x,
        time_at={"n": 1},
        check_at=({"n": 1},),
        work=lambda n: {},
        rtol=0,
        atol=0,
    )
    built = build(path, ("90a",), cache=BUILD_CACHE, root=tmp_path)
    side = CudaSide(path, built.library, workload, Directives())
    step = side.prepare({"x": torch.zeros(1)}, {"n": 1}, lambda: 0)
    with pytest.raises(SideFailure, match=r"ch01/side.cu: launch returned (35|100) \(\w+") as caught:
        step()
    assert caught.value.status is Status.LAUNCH_FAILED


def test_the_signatures_of_a_source_need_no_build(tmp_path):
    signatures = read_signatures(source(tmp_path, SIDE))
    assert (len(signatures.launch), len(signatures.prepare), signatures.finishes) == (11, 3, True)
