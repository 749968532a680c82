// Optimized: a SWITCH node per token launches the chosen expert.
// predicts: baseline 0.47 ms = 16 * ((2 + 3.75) * launch + 8e-6)  (3.75 layers per token on average; 8 us for router and wait, assumed)
// predicts: optimized 0.25 ms = 16 * (3e-6 + 5e-6 + 3.75 * 2e-6)  (router 3 us, switch 5 us, layer 2 us, all assumed) on h100
// proves: launches < 0.1 x baseline
// proves: calls cudaStreamSynchronize == 0
// proves: /\bCALL\.ABS\.NOINC\b/ in route
// scratch: int8_t state_a[dim]
// scratch: int8_t state_b[dim]
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int EXPERTS = 4, LANES = 32;  // expert e has 2^e layers, and the first is layer 2^e - 1 of the weights
constexpr int ROWS = 8;                 // rows of a layer per block, one per warp
constexpr int SHIFT = 9;

__device__ int clamp8(int v) { return min(max(v, -128), 127); }

// Dot product of two rows of int8, by one warp; every lane gets it.
__device__ int dot(const int8_t* a, const int8_t* b, int dim) {
    int sum = 0;
    for (int k = threadIdx.x % LANES; k < dim / 4; k += LANES)
        sum = __dp4a(reinterpret_cast<const int*>(a)[k], reinterpret_cast<const int*>(b)[k], sum);
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

// One layer: a warp per row.
__global__ void layer(const int8_t* __restrict__ weight, const int8_t* __restrict__ from, int8_t* to, int* y, int dim) {
    int row = blockIdx.x * ROWS + threadIdx.x / LANES;
    if (row >= dim) return;
    int state = clamp8(dot(weight + size_t(row) * dim, from, dim) >> SHIFT);
    if (threadIdx.x % LANES == 0) to[row] = int8_t(state), y[row] = state;
}

// Adds the token to the state in y, which the previous token left, and picks the expert with the largest logit. One warp per expert.
__global__ void route(const int8_t* __restrict__ x, const int8_t* __restrict__ gate, const int* y, int8_t* state, int* counts,
                      cudaGraphConditionalHandle choice, int token, int dim) {
    __shared__ int logits[EXPERTS];
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        state[i] = int8_t(clamp8(x[size_t(token) * dim + i] + (token ? y[size_t(token - 1) * dim + i] : 0)));
    __syncthreads();
    int expert = threadIdx.x / LANES, logit = dot(gate + expert * dim, state, dim);
    if (threadIdx.x % LANES == 0) {
        logits[expert] = logit;
        if (token == 0) counts[expert] = 0;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    int best = 0;
    for (int e = 1; e < EXPERTS; e++)
        if (logits[e] > logits[best]) best = e;
    counts[best]++;
    cudaGraphSetConditional(choice, best);
}

// Runs the layers of one expert on `state`, in place; the last layer's values stay in y.
void run_expert(int expert, const int8_t* weight, int8_t* state, int8_t* other, int* y, int dim, cudaStream_t stream) {
    for (int l = 0, depth = 1 << expert; l < depth; l++) {
        const int8_t* matrix = weight + size_t(depth - 1 + l) * dim * dim;
        layer<<<ceil_div(dim, ROWS), ROWS * LANES, 0, stream>>>(matrix, l % 2 ? other : state, l % 2 ? state : other, y, dim);
    }
}

// Adds a SWITCH node behind the node `after`, with an expert's layers as each of its bodies.
cudaError_t add_switch(cudaGraph_t graph, cudaGraphNode_t* after, cudaGraphConditionalHandle choice, const int8_t* weight, int8_t* state_a,
                       int8_t* state_b, int* y, int dim, cudaStream_t recorder) {
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = choice;
    node.conditional.type = cudaGraphCondTypeSwitch;
    node.conditional.size = EXPERTS;
    cudaGraphNode_t router = *after;
    if (cudaError_t code = cudaGraphAddNode(after, graph, &router, nullptr, 1, &node)) return code;
    for (int e = 0; e < EXPERTS; e++) {
        cudaGraph_t body = node.conditional.phGraph_out[e];
        cudaStreamBeginCaptureToGraph(recorder, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal);
        run_expert(e, weight, state_a, state_b, y, dim, recorder);
        if (cudaError_t code = cudaStreamEndCapture(recorder, &body)) return code;
    }
    return cudaSuccess;
}

PREPARE(const int8_t* x, const int8_t* gate, const int8_t* weight, int* y, int* counts, int8_t* state_a, int8_t* state_b, int tokens,
        int dim, void** state) {
    cudaFuncAttributes loaded;  // this call loads the kernels, which a capture must not do
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, route)) return code;
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, layer)) return code;
    cudaGraph_t graph;
    cudaStream_t recorder;
    if (cudaError_t code = cudaGraphCreate(&graph, 0)) return code;
    if (cudaError_t code = cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking)) return code;
    cudaGraphNode_t last;
    for (int t = 0; t < tokens; t++) {
        cudaGraphConditionalHandle choice;
        if (cudaError_t code = cudaGraphConditionalHandleCreate(&choice, graph, 0, 0)) return code;
        cudaStreamBeginCaptureToGraph(recorder, graph, &last, nullptr, t ? 1 : 0, cudaStreamCaptureModeThreadLocal);
        route<<<1, EXPERTS * LANES, 0, recorder>>>(x, gate, y, state_a, counts, choice, t, dim);
        cudaStreamCaptureStatus status;
        const cudaGraphNode_t* nodes;
        const cudaGraphEdgeData* edges;
        size_t count;
        if (cudaError_t code = cudaStreamGetCaptureInfo(recorder, &status, nullptr, &graph, &nodes, &edges, &count)) return code;
        last = nodes[0];  // the router; the capture continues behind it
        if (cudaError_t code = cudaStreamEndCapture(recorder, &graph)) return code;
        if (cudaError_t code = add_switch(graph, &last, choice, weight, state_a, state_b, y + size_t(t) * dim, dim, recorder)) return code;
    }
    cudaGraphExec_t decode;
    if (cudaError_t code = cudaGraphInstantiate(&decode, graph, 0)) return code;
    *state = decode;
    if (cudaError_t code = cudaGraphDestroy(graph)) return code;
    return cudaStreamDestroy(recorder);
}

LAUNCH(int* y, int* counts, void* state, cudaStream_t stream) {  // y and counts are where the graph writes
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);
}

FINISH(void* state) { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(state)); }
