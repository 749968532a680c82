// Optimized: a plain graph; layers that the expert lacks return at once.
// predicts: all_layers 0.24 ms = 16 * (3e-6 + 3.75 * 2e-6 + 4.25 * 1e-6)  (router 3 us, layer 2 us, one that returns 1 us: assumed)
// proves: launches < 0.1 x baseline
// proves: calls cudaStreamSynchronize == 0
// scratch: int8_t state_a[dim]
// scratch: int8_t state_b[dim]
// scratch: int choice[1]
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int EXPERTS = 4, LANES = 32;  // expert e has 2^e layers, and the first is layer 2^e - 1 of the weights
constexpr int ROWS = 8;                 // rows of a layer per block, one per warp
constexpr int SHIFT = 9;
constexpr int DEEPEST = 1 << (EXPERTS - 1);

__device__ int clamp8(int v) { return min(max(v, -128), 127); }

// Dot product of two rows of int8, by one warp; every lane gets it.
__device__ int dot(const int8_t* a, const int8_t* b, int dim) {
    int sum = 0;
    for (int k = threadIdx.x % LANES; k < dim / 4; k += LANES)
        sum = __dp4a(reinterpret_cast<const int*>(a)[k], reinterpret_cast<const int*>(b)[k], sum);
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

// The l-th layer of the chosen expert, if it has so many: a warp per row.
__global__ void layer(const int8_t* __restrict__ weight, const int8_t* __restrict__ from, int8_t* to, int* y, const int* choice, int l,
                      int dim) {
    int row = blockIdx.x * ROWS + threadIdx.x / LANES, depth = 1 << *choice;
    if (l >= depth || row >= dim) return;
    int state = clamp8(dot(weight + (size_t(depth - 1 + l) * dim + row) * dim, from, dim) >> SHIFT);
    if (threadIdx.x % LANES == 0) to[row] = int8_t(state), y[row] = state;
}

// Adds the token to the state in y, which the previous token left, and picks the expert with the largest logit. One warp per expert.
__global__ void route(const int8_t* __restrict__ x, const int8_t* __restrict__ gate, const int* y, int8_t* state, int* counts, int* choice,
                      int token, int dim) {
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
    *choice = best;
}

PREPARE(const int8_t* x, const int8_t* gate, const int8_t* weight, int* y, int* counts, int8_t* state_a, int8_t* state_b, int* choice,
        int tokens, int dim, void** state) {
    cudaFuncAttributes loaded;  // this call loads the kernels, which a capture must not do
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, route)) return code;
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, layer)) return code;
    cudaStream_t recorder;
    if (cudaError_t code = cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking)) return code;
    if (cudaError_t code = cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal)) return code;
    for (int t = 0; t < tokens; t++) {
        route<<<1, EXPERTS * LANES, 0, recorder>>>(x, gate, y, state_a, counts, choice, t, dim);
        for (int l = 0; l < DEEPEST; l++)
            layer<<<ceil_div(dim, ROWS), ROWS * LANES, 0, recorder>>>(weight, l % 2 ? state_b : state_a, l % 2 ? state_a : state_b,
                                                                      y + size_t(t) * dim, choice, l, dim);
    }
    cudaGraph_t graph;
    if (cudaError_t code = cudaStreamEndCapture(recorder, &graph)) return code;
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
