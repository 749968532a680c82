"""Every plain CUDA side is right on the CPU; and the emulation finds what is wrong with kernels that are wrong on purpose."""

import re
import shutil
from pathlib import Path

import pytest

from common.python.discovery import discover
from common.python.settings import PROJECT_ROOT
from tests.emulation.emulate import check_side
from tests.emulation.translate import NotEmulated

TREE = discover(PROJECT_ROOT)
SIDES = {side: pair.workload for pair in TREE.pairs for side in pair.sides.values() if side.suffix == ".cu"}
TEMPLATES = PROJECT_ROOT / "common" / "python" / "templates" / "pair"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

WORKLOAD = '''"""A vector."""
import torch
from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=REFERENCE,
    time_at={"n": 4096},
    check_at=({"n": 100}, {"n": 256}, {"n": 1}),
    work=lambda n: {},
    rtol=1e-6,
    atol=0.0,
)
'''
COPY = "lambda x: x.clone()"
ARGUMENTS = "const float* x, float* y, int n, cudaStream_t stream"
LAUNCH_COPY = "copy<<<ceil_div(n, 64), 64, 0, stream>>>(x, y, n);"


def check(tmp_path, kernels, body=LAUNCH_COPY, reference=COPY, shapes=None, before="// A side.", arguments=ARGUMENTS):
    """Check a side with `kernels`, from line 3 on, whose LAUNCH does `body`, against `reference`, a function of x."""
    (tmp_path / "workload_v.py").write_text(WORKLOAD.replace("REFERENCE", reference))
    side = tmp_path / "optimized_v.cu"
    side.write_text(
        f'{before}\n#include "common/cuda/launch.cuh"\n{kernels}\nLAUNCH({arguments}) {{\n{body}\nreturn cudaGetLastError();\n}}\n'
    )
    return check_side(tmp_path / "workload_v.py", side, shapes)


def wrong(tmp_path, *arguments, **options):
    """The sentence that the check of a wrong side ends with."""
    with pytest.raises(AssertionError) as caught:
        check(tmp_path, *arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: str(side.relative_to(PROJECT_ROOT)))
def test_every_plain_cuda_side(side):
    try:
        notes = check_side(SIDES[side], side)
    except NotEmulated as reason:
        pytest.skip(str(reason))
    if notes:
        pytest.skip("; ".join(notes))


@pytest.mark.parametrize("side", ["baseline.cu", "optimized.cu"])
def test_the_templates_of_a_new_pair(side, tmp_path):
    shutil.copy(TEMPLATES / side, tmp_path / f"{Path(side).stem}_x.cu")
    assert check_side(TEMPLATES / "workload.py", tmp_path / f"{Path(side).stem}_x.cu") == []


KERNEL = "__global__ void copy(const float* x, float* y, int n) {{\n    int i = blockIdx.x * 64 + threadIdx.x;\n{}\n}}"
WHOLE_BLOCKS = ({"n": 64}, {"n": 256})


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "y[i] = x[i];",
            r"kernel copy, block \(1, 0, 0\), thread \(36, 0, 0\) reads 4 bytes at byte 400 of x, which has 400, .*optimized_v.cu:5",
        ),
        ("if (i < n) y[i + 1] = x[i];", r"writes 4 bytes at byte 400 of y, which has 400"),
        ("if (i < n) y[i] = x[i - 1 < 0 ? -1 : i];", r"reads 4 bytes at byte -4 of x"),
        ("if (i < n && i % 4) y[i] = x[i];", r"output y: 25 of 100 elements .* is nan"),
        ("if (i < n - 1) y[i] = x[i];", r"output y: 1 of 100 elements .* at flat index 99, is nan"),
        ("if (i < n) const_cast<float*>(x)[i] = y[i] = x[i];", r"writes x, which is const"),
        ("float* other = nullptr; if (i < n) other[i] = x[i];", r"null pointer"),
        ("if (i < n) y[i] = reinterpret_cast<const float2*>(x + 1)[0].x;", r"not aligned for its type.* at .*optimized_v.cu:5"),
        ("float four[4] = {}; if (i < n) y[i] = four[i];", r"indexes an array out of its bounds at .*optimized_v.cu:5"),
        ("if (i < n) y[i] = x[i]; __shfl_sync(1, i, 0);", r"__shfl_sync at .*:5 for lanes 0x00000001, of which it is none"),
        ("if (i >= n) return; y[i] = x[i]; __syncthreads();", r"waits for ever: .* is at the barrier of .*:5, .* has returned"),
        ("if (i % 2) __syncthreads();\nelse __syncthreads();", r"waits for ever: .* barrier of .*:6, .* barrier of .*:5"),
        (
            "if (i % 2) __syncwarp();\nelse __syncthreads();",
            r"waits for ever: .* at __syncwarp of .*:5 for lanes 0xffffffff, .* barrier of .*:6",
        ),
        ("while (atomicAdd(&y[0], 0.0f) != 1) {}", r"too many accesses: it waits for another block, or the shape is too large"),
        ("__trap();", r"traps at .*:5"),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said(statement, found, tmp_path):
    assert re.search(found, wrong(tmp_path, KERNEL.format(statement)), re.DOTALL)


TILE = """__global__ void copy(const float* x, float* y, int n) {{
    __shared__ float tile[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t] = x[i];
    {}
    y[i] = {};
}}"""
REVERSED = "lambda x: x.view(-1, 64).flip(1).view(-1)"


@pytest.mark.parametrize(
    ("barrier", "value", "reference"),
    [
        ("__syncthreads();", "tile[63 - t]", REVERSED),
        ("", "tile[t]", COPY),
        ("__syncwarp();", "tile[t ^ 31]", "lambda x: x.view(-1, 32).flip(1).view(-1)"),
        ("if (t < 32) __syncwarp(); else __syncwarp();", "tile[t ^ 1]", "lambda x: x.view(-1, 2).flip(1).view(-1)"),
    ],
)
def test_shared_memory_with_the_barrier_it_needs(barrier, value, reference, tmp_path):
    assert check(tmp_path, TILE.format(barrier, value), reference=reference, shapes=WHOLE_BLOCKS) == []


@pytest.mark.parametrize(
    ("barrier", "value", "found"),
    [
        ("", "tile[63 - t]", r"thread \(32, 0, 0\) writes tile at \S+:6, which thread \(31, 0, 0\) read at \S+:8, with no barrier"),
        (
            "__syncwarp();",
            "tile[63 - t]",
            r"tile at \S+optimized_v.cu:8, which thread \(\d+, 0, 0\) wrote at \S+optimized_v.cu:6, with no bar",
        ),
        ("", "tile[t ^ 1]", r"thread \(1, 0, 0\) writes tile at \S+optimized_v.cu:6, which thread \(0, 0, 0\) read at \S+optimized_v.cu:8"),
        (
            "__syncthreads();",
            "tile[t]; tile[t ^ 1] = 0",
            r"thread \(1, 0, 0\) reads tile at \S+:8, which thread \(0, 0, 0\) wrote at \S+:8",
        ),
        (
            "__syncthreads();",
            "(&tile[t])[1]",
            r"thread \(63, 0, 0\) reads 4 bytes of shared memory that no variable of the block has, at \S+:8",
        ),
        ("__syncthreads();", "tile[t + 1]", r"indexes an array out of its bounds at \S+:8"),
        ("__syncthreads();", "*reinterpret_cast<float2*>(&tile[t / 2 * 2])", r"no match|cannot convert"),
        ("__syncthreads();", "reinterpret_cast<float2*>(&tile[0])->x", r"not aligned for its type, at \S+:8"),
        ("__syncthreads(); __shared__ float sum; atomicAdd(&sum, x[i]); __syncthreads();", "sum", r"is nan"),
    ],
)
def test_what_is_wrong_with_shared_memory_is_said(barrier, value, found, tmp_path):
    assert re.search(found, wrong(tmp_path, TILE.format(barrier, value), reference=REVERSED, shapes=WHOLE_BLOCKS))


@pytest.mark.parametrize(
    ("kernels", "body", "found"),
    [
        ("", "y[0] = x[0];", r"the host itself touches x, memory of the device, at \S+optimized_v.cu:5"),
        ("", "cudaMemsetAsync(y, 0, 4 * n + 1, stream);", r"the host's runtime writes 401 bytes at byte 0 of y, which has 400"),
        ("", "cudaMemcpyAsync(const_cast<float*>(x), y, 4, cudaMemcpyDeviceToDevice, stream);", r"writes 4 bytes at byte 0 of x"),
        ("__global__ void k() {}", "k<<<0, 64, 0, stream>>>();", r"kernel k: found grid \(0, 1, 1\) of blocks \(64, 1, 1\)"),
        ("__global__ void k() {}", "k<<<1, 1025>>>();", r"expected neither to be empty, at most 1024 threads"),
        ("__global__ void k() {}", "k<<<1, 32, 50000>>>();", r"found 50000 bytes of dynamic shared memory; expected at most 49152"),
        ("__global__ void k() { __shared__ int big[12289]; big[0] = 1; }", "k<<<1, 1>>>();", r"more than 49152 bytes of static shared"),
        (
            "template <int> __global__ void k(float* y) { y[-1] = 0; }",
            "k<3><<<1, 1>>>(y);",
            r"kernel k<3>, .* writes 4 bytes at byte -4 of y",
        ),
        (
            "__global__ void k(const float* x) { printf(x[0] > 2 ? x[1] : x[2]); }",
            "k<<<1, 1>>>(x);",
            r"cannot be emulated: .*v.cu:3:\d+: error",
        ),
        ("__global__ void k(float* y) { y[0] = undeclared; }", "k<<<1, 1>>>(y);", r"cannot be emulated: .*v.cu:3:\d+: error: .undeclared"),
    ],
)
def test_what_is_wrong_with_a_launch_is_said(kernels, body, found, tmp_path):
    assert re.search(found, wrong(tmp_path, kernels, body))


def test_a_tail_that_is_forgotten_is_found_at_the_shape_that_has_one(tmp_path):
    kernel = KERNEL.format("if (i / 64 < n / 64) y[i] = x[i];")
    assert check(tmp_path, kernel, shapes=WHOLE_BLOCKS) == []
    assert "at {'n': 100}, threads forward: output y: 36 of 100 elements" in wrong(tmp_path, kernel)


def test_a_race_on_global_memory_shows_in_another_order_of_threads(tmp_path):
    last_one_wins = KERNEL.format("if (i < n) y[i] = x[i];\nif (i > 0 && i < n) y[i - 1] = x[i - 1] * (threadIdx.x % 2 ? 1 : 1 + 2e-7f);")
    found = "output y depends on whether threads run forward or backward"
    assert found in wrong(tmp_path, last_one_wins, shapes=WHOLE_BLOCKS)


def test_an_order_of_blocks_is_not_relied_on(tmp_path):
    carried = KERNEL.format("if (i < n) y[i] = i < 64 ? x[i] : y[i - 64] - y[i - 64] + x[i];")
    assert "threads backward: output y: " in wrong(tmp_path, carried, shapes=WHOLE_BLOCKS)


def test_a_variable_that_nobody_initialised_is_never_zero(tmp_path):
    kernel = KERNEL.format("float sums[4];\nif (i < n) { sums[i % 4] += x[i]; y[i] = sums[i % 4]; }")
    assert "are outside" in wrong(tmp_path, kernel)


def test_lanes_exchange_and_vote(tmp_path):
    kernel = KERNEL.format("""
    const unsigned all = ~0u;
    const int lane = threadIdx.x % 32;
    float v = x[i];
    int wrong = 0;
    wrong += __shfl_sync(all, lane, 5) != 5;
    wrong += __shfl_sync(all, lane, 3, 8) != lane / 8 * 8 + 3;
    wrong += __shfl_up_sync(all, lane, 2) != (lane < 2 ? lane : lane - 2);
    wrong += __shfl_down_sync(all, double(lane), 4, 16) != (lane % 16 < 12 ? lane + 4 : lane);
    wrong += __shfl_xor_sync(all, (long long)lane << 40, 16) != (long long)(lane ^ 16) << 40;
    wrong += __ballot_sync(all, lane % 3 == 0) != 0x49249249;
    wrong += !__any_sync(all, lane == 31) || __any_sync(all, 0) || __all_sync(all, lane) || !__all_sync(all, 1);
    wrong += __reduce_add_sync(all, lane) != 496 || __reduce_max_sync(all, lane) != 31 || __reduce_xor_sync(all, lane) != 0;
    wrong += __match_any_sync(all, lane / 8) != 0xFFu << lane / 8 * 8;
    wrong += __syncthreads_count(lane == 1) != 2 || __syncthreads_or(0) || !__syncthreads_and(1);
    if (lane < 7) wrong += __shfl_down_sync(0x7F, lane, 1) != lane + 1 && lane < 6;
    if (lane >= 20) return;
    wrong += __ballot_sync(all, 1) != 0xFFFFF;
    y[i] = wrong ? 0 : v;
    if (lane < 12) y[i + 20] = __shfl_down_sync(0xFFF, x[i + 20], 0);""")
    assert check(tmp_path, kernel, shapes=WHOLE_BLOCKS) == []


def test_cooperative_groups_exchange_within_their_tiles(tmp_path):
    kernel = KERNEL.format("""
    auto block = cooperative_groups::this_thread_block();
    auto tile = cooperative_groups::tiled_partition<8>(block);
    int wrong = block.thread_rank() != threadIdx.x || block.size() != 64 || tile.meta_group_rank() != threadIdx.x / 8;
    wrong += cooperative_groups::reduce(tile, int(tile.thread_rank()), cooperative_groups::plus<int>()) != 28;
    wrong += tile.shfl(threadIdx.x, 7) != threadIdx.x / 8 * 8 + 7 || tile.ballot(tile.thread_rank() < 2) != 3;
    block.sync();
    y[i] = wrong ? 0 : x[i];""")
    before = "// A side.\n#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>"
    assert check(tmp_path, kernel, shapes=WHOLE_BLOCKS, before=before) == []


def test_atomics_add_up_in_any_order(tmp_path):
    kernel = """
__device__ int counter;
__global__ void sum(const float* x, float* y, int n) {
    __shared__ float total;
    __shared__ int largest, count[2];
    if (threadIdx.x == 0) total = 0, largest = -1, count[0] = count[1] = 0;
    __syncthreads();
    atomicAdd(&total, x[threadIdx.x]);
    atomicMax(&largest, int(threadIdx.x));
    atomicInc(reinterpret_cast<unsigned*>(&count[threadIdx.x % 2]), 1000u);
    int seen;
    __syncthreads();
    if (threadIdx.x == 0) counter = 0;
    __syncthreads();
    do { seen = counter; } while (atomicCAS(&counter, seen, seen + 1) != seen);
    __syncthreads();
    bool right = largest == n - 1 && count[0] == (n + 1) / 2 && count[1] == n / 2 && counter == n;
    y[threadIdx.x] = right ? total : 0;
}"""
    assert check(tmp_path, kernel, "sum<<<1, n, 0, stream>>>(x, y, n);", "lambda x: x.sum().expand(x.shape).clone()", ({"n": 77},)) == []


@pytest.mark.parametrize(("small", "rounded"), [("__half", "half"), ("__nv_bfloat16", "bfloat16")])
def test_small_floats_round_as_torch_does(small, rounded, tmp_path):
    scaled = "x.float() - 0.5) * torch.exp2(torch.arange(len(x)) % 48 - 30).float()"
    kernel = f"__global__ void copy(const float* x, float* y, int n) {{ for (int i = 0; i < n; i++) y[i] = {small}((x[i] - 0.5f) * exp2f(i % 48 - 30)); }}"
    reference = f"lambda x: (({scaled}).{rounded}().double()"
    assert check(tmp_path, kernel, "copy<<<1, 1, 0, stream>>>(x, y, n);", reference, ({"n": 20_000},)) == []


def test_shared_memory_in_every_form(tmp_path):
    kernel = """
struct Pair { float a; int b; };
template <typename T, int N>
__device__ T* slots() {
    __shared__ T kept[N];
    return kept;
}
__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ alignas(16) float rows[2][32], one, more[3][2][8];
    __shared__ Pair pairs[64];
    float* first = slots<float, 64>();
    float* second = slots<float, 65>();
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    float* dynamic = reinterpret_cast<float*>(raw);
    dynamic[t] = rows[t / 32][t % 32] = first[t] = pairs[t].a = x[i];
    second[t] = 0;
    pairs[t].b = t;
    if (t < 48) more[t / 16][t / 8 % 2][t % 8] = 1;
    if (t == 0) one = 1;
    __syncthreads();
    const int u = 63 - t;
    float4 four = reinterpret_cast<const float4*>(rows)[u / 4];
    const float same = u % 4 == 0 ? four.x : u % 4 == 1 ? four.y : u % 4 == 2 ? four.z : four.w;
    const bool right = same == dynamic[u] && first[u] == same && pairs[u].a == same && pairs[u].b == u && one == more[2][1][7];
    y[i] = right && second[u] == 0 ? same : 0;
}"""
    assert check(tmp_path, kernel, "copy<<<n / 64, 64, 256, stream>>>(x, y, n);", REVERSED, WHOLE_BLOCKS) == []


ASYNC = """#include <cuda_pipeline.h>
__global__ void copy(const float* x, float* y, int n) {{
    __shared__ float tile[2][64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    __pipeline_memcpy_async(&tile[0][t], &x[i], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&tile[1][t], &x[i], 4, 4);
    __pipeline_commit();
    {}
    y[i] = tile[0][63 - t]{};
}}"""


def test_an_asynchronous_copy_is_there_once_it_was_waited_for(tmp_path):
    right = ASYNC.format("__pipeline_wait_prior(1); __syncthreads();", "")
    assert check(tmp_path, right, reference=REVERSED, shapes=WHOLE_BLOCKS) == []
    both = ASYNC.format("__pipeline_wait_prior(0); __syncthreads();", " + tile[1][t]")
    assert check(tmp_path, both, reference=REVERSED, shapes=WHOLE_BLOCKS) == []


@pytest.mark.parametrize("early", ["__syncthreads();", "__pipeline_wait_prior(2); __syncthreads();"])
def test_an_asynchronous_copy_is_not_there_before(early, tmp_path):
    sentence = wrong(tmp_path, ASYNC.format(early, ""), reference=REVERSED, shapes=WHOLE_BLOCKS)
    assert re.search(r"reads tile at \S+:12, which thread \(31, 0, 0\) wrote at \S+:7, with no barrier", sentence)


GRAPH = """
PREPARE(const float* x, float* y, int n, cudaStream_t stream, void** state) {{
    cudaStream_t recorder;
    cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking);
    cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal);
    cudaMemsetAsync(y, 0, 4 * n, recorder);
    copy<<<ceil_div(n, 64), 64, 0, recorder>>>(x, y, n);
    {}
    cudaGraph_t graph;
    cudaStreamEndCapture(recorder, &graph);
    cudaGraphExec_t replay;
    cudaGraphInstantiate(&replay, graph, 0);
    *state = replay;
    cudaGraphDestroy(graph);
    return cudaStreamDestroy(recorder);
}}
FINISH(void* state) {{ return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(state)); }}"""


def check_graph(tmp_path, in_prepare, launch):
    kernel = KERNEL.format("if (i < n) y[i] += x[i];") + GRAPH.format(in_prepare)
    return check(tmp_path, kernel, launch, arguments="float* y, void* state, cudaStream_t stream")


def test_a_captured_graph_runs_when_it_is_launched(tmp_path):
    assert check_graph(tmp_path, "", "cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);") == []


def test_a_captured_graph_does_not_run_before(tmp_path):
    with pytest.raises(AssertionError, match="is nan"):
        check_graph(tmp_path, "", "")


def test_a_capture_does_not_wait(tmp_path):
    with pytest.raises(AssertionError, match="the host waits, allocates or captures while it captures a graph"):
        check_graph(tmp_path, "cudaStreamSynchronize(recorder);", "")


STATE = """
struct State { float* copy; };
PREPARE(int n, void** state) {
    auto* made = new State;
    *state = made;
    cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
    return cudaMalloc(&made->copy, 4 * n);
}
FINISH(void* state) {
    const cudaError_t code = cudaFree(static_cast<State*>(state)->copy);
    delete static_cast<State*>(state);
    return code;
}"""


def test_set_up_runs_once_and_is_undone(tmp_path):
    kernel = KERNEL.format("extern __shared__ float tile[];\ntile[threadIdx.x] = x[i];\ny[i] = tile[threadIdx.x];") + STATE
    body = """float* kept = static_cast<State*>(state)->copy;
    cudaMemcpyAsync(kept, x, 4 * n, cudaMemcpyDeviceToDevice, stream);
    copy<<<n / 64, 64, 100000, stream>>>(kept, y, n);"""
    arguments = "const float* x, float* y, int n, void* state, cudaStream_t stream"
    assert check(tmp_path, kernel, body, shapes=WHOLE_BLOCKS, arguments=arguments) == []


@pytest.mark.parametrize(
    ("kernels", "found"),
    [
        ('__global__ void k() { asm volatile("nanosleep.u32 0;"); }', r"v.cu: uses inline PTX \(`asm`\), which is not emulated"),
        ("#include <cuda/barrier>", r"v.cu: includes cuda/barrier, which is not emulated"),
        ("#include <mma.h>", r"includes mma.h"),
        ("__global__ void __cluster_dims__(2) k() {}", r"a thread-block cluster"),
        ("extern __shared__ float outside[];", r"`__shared__ float outside\[\]` outside a function"),
        ("__global__ void k() { __shared__ float (*odd)[2]; }", r"`__shared__ float \(\*odd\)\[2\]`"),
    ],
)
def test_what_is_not_emulated_is_named(kernels, found, tmp_path):
    with pytest.raises(NotEmulated, match=found):
        check(tmp_path, kernels)


def test_comments_and_strings_are_not_code(tmp_path):
    kernel = KERNEL.format(
        '    // asm <<<1>>> __shared__ x;\n    /* asm\n */ if (i < -1) printf("// no comment");\n    if (i < n) y[i] = x[i];'
    )
    assert check(tmp_path, kernel) == []


def test_a_shape_that_is_too_large_is_noted(tmp_path):
    notes = check(tmp_path, KERNEL.format(""), shapes=({"n": 1 << 20},))
    assert notes == [f"{tmp_path.name}/optimized_v.cu at {{'n': 1048576}}: 2097152 elements are too many to emulate"]
