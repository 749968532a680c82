"""What a side may use of CUDA means on the CPU what it means on a GPU; what it may not is named."""

import re
import shutil

import pytest

from tests.emulation.translate import NotEmulated
from tests.emulation.vectors import KERNEL, LAUNCH_COPY, REVERSED, WHOLE_BLOCKS, check, wrong

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"), pytest.mark.slow]


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
    kernel = KERNEL.format(f"for (i = 0; i < n; i++) y[i] = {small}((x[i] - 0.5f) * exp2f(i % 48 - 30));")
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


CONDITIONAL = """
__device__ int rounds;
__global__ void add(const float* x, float* y, int n, cudaGraphConditionalHandle handle) {{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] += x[i];
    if (i == 0) cudaGraphSetConditional(handle, ++rounds < 3);
}}
PREPARE(const float* x, float* y, int n, cudaStream_t stream, void** state) {{
    cudaStream_t recorder;
    cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking);
    cudaGraph_t graph;
    cudaGraphNode_t made;
    cudaGraphNodeParams node = {{}};
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandleCreate(&node.conditional.handle, graph, {value}, cudaGraphCondAssignDefault);
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.type = {kind};
    node.conditional.size = {size};
    cudaGraphAddNode(&made, graph, nullptr, nullptr, 0, &node);
    for (int i = 0; i < {size}; i++) {{
        cudaGraph_t body = node.conditional.phGraph_out[i];
        cudaStreamBeginCaptureToGraph(recorder, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal);
        for (int k = 0; k <= i; k++) add<<<ceil_div(n, 64), 64, 0, recorder>>>(x, y, n, node.conditional.handle);
        cudaStreamEndCapture(recorder, &body);
    }}
    cudaGraphExec_t replay;
    cudaGraphInstantiate(&replay, graph, 0);
    *state = replay;
    return cudaGraphDestroy(graph);
}}
FINISH(void* state) {{ return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(state)); }}"""


@pytest.mark.parametrize(
    ("kind", "size", "value", "times"),
    [
        ("cudaGraphCondTypeWhile", 1, 1, 3),
        ("cudaGraphCondTypeWhile", 1, 0, 0),
        ("cudaGraphCondTypeIf", 1, 1, 1),
        ("cudaGraphCondTypeIf", 1, 0, 0),
        ("cudaGraphCondTypeIf", 2, 0, 2),
        ("cudaGraphCondTypeSwitch", 4, 3, 4),
        ("cudaGraphCondTypeSwitch", 4, 4, 0),
    ],
)
def test_a_conditional_node_runs_the_body_that_its_value_says(kind, size, value, times, tmp_path):
    kernels = CONDITIONAL.format(kind=kind, size=size, value=value)
    body = """rounds = 0;
    cudaMemsetAsync(y, 0, 4 * n, stream);
    cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);"""
    assert check(tmp_path, kernels, body, f"lambda x: {times} * x", arguments="float* y, int n, void* state, cudaStream_t stream") == []


UPDATE = """
    cudaGraph_t other;
    cudaGraphExecUpdateResultInfo result;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    {}
    cudaStreamEndCapture(stream, &other);
    if (cudaError_t code = cudaGraphExecUpdate(static_cast<cudaGraphExec_t>(state), other, &result)) return code;
    cudaGraphDestroy(other);
    cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);"""
UPDATED = "const float* x, float* y, int n, void* state, cudaStream_t stream"


def test_an_updated_graph_has_the_new_arguments(tmp_path):
    kernel = KERNEL.format("if (i < n) y[i] = n == 1 ? 7 : x[i];") + GRAPH.format("").replace("(x, y, n);", "(x, y, 1);")
    launches = "cudaMemsetAsync(y, 0, 4 * n, stream);\n" + LAUNCH_COPY
    assert check(tmp_path, kernel, UPDATE.format(launches), shapes=WHOLE_BLOCKS, arguments=UPDATED) == []


def test_an_update_cannot_add_a_node(tmp_path):
    kernel = KERNEL.format("if (i < n) y[i] = x[i];") + GRAPH.format("")
    with pytest.raises(AssertionError, match="launch returned 910"):
        check(tmp_path, kernel, UPDATE.format(3 * LAUNCH_COPY), arguments=UPDATED)


def test_a_launch_with_attributes_is_a_launch(tmp_path):
    kernel = KERNEL.format("cudaTriggerProgrammaticLaunchCompletion();\ncudaGridDependencySynchronize();\nif (i < n) y[i] = x[i];")
    body = """cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = ceil_div(n, 64), launch.blockDim = 64, launch.stream = stream, launch.attrs = &early, launch.numAttrs = 1;
    if (cudaError_t code = cudaLaunchKernelEx(&launch, copy, x, y, n)) return code;"""
    assert check(tmp_path, kernel, body) == []


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
        ("__global__ void k() { __nothing_known(); }", r"v.cu: uses __nothing_known, which is not emulated"),
        ("__global__ void __cluster_dims__(2) k() {}", r"a thread-block cluster"),
        ("__global__ void k() { k<<<1, 1, 0, cudaStreamTailLaunch>>>(); }", r"a launch from the device"),
        ("void f() { cudaGraphAddKernelNode(0, 0, 0, 0, 0); }", r"a graph that is not captured"),
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
    assert notes == ["vectors/optimized_v.cu at {'n': 1048576}: 2097152 elements are too many to emulate"]
