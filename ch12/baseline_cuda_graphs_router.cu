// Baseline: the host waits for each choice, then launches that expert.
// allows: grid, sync
// scratch: int8_t state_a[dim]
// scratch: int8_t state_b[dim]
// scratch: int choice[1]
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

// Runs the layers of one expert on `state`, in place; the last layer's values stay in y.
void run_expert(int expert, const int8_t* weight, int8_t* state, int8_t* other, int* y, int dim, cudaStream_t stream) {
    for (int l = 0, depth = 1 << expert; l < depth; l++) {
        const int8_t* matrix = weight + size_t(depth - 1 + l) * dim * dim;
        layer<<<ceil_div(dim, ROWS), ROWS * LANES, 0, stream>>>(matrix, l % 2 ? other : state, l % 2 ? state : other, y, dim);
    }
}

PREPARE(void** state) { return cudaMallocHost(state, sizeof(int)); }  // pinned, so that the copy of the choice needs no staging

LAUNCH(const int8_t* x, const int8_t* gate, const int8_t* weight, int* y, int* counts, int8_t* state_a, int8_t* state_b, int* choice,
       int tokens, int dim, void* state, cudaStream_t stream) {
    int* expert = static_cast<int*>(state);
    for (int t = 0; t < tokens; t++) {
        route<<<1, EXPERTS * LANES, 0, stream>>>(x, gate, y, state_a, counts, choice, t, dim);
        if (cudaError_t code = cudaMemcpyAsync(expert, choice, sizeof(int), cudaMemcpyDeviceToHost, stream)) return code;
        if (cudaError_t code = cudaStreamSynchronize(stream)) return code;
        run_expert(*expert, weight, state_a, state_b, y + size_t(t) * dim, dim, stream);
    }
    return cudaGetLastError();
}

FINISH(void* state) { return cudaFreeHost(state); }
