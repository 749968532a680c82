// Optimized: a plain graph of eight rounds; one wait per graph.
// predicts: eight_rounds 0.473 ms = 7.5 * (8 * 3 * 2e-6 + 7e-6 + 8e-6)  (graphs on average; kernels, a start, copy and wait: assumed)
// proves: launches < 0.1 x baseline
// proves: calls cudaStreamSynchronize < 0.3 x baseline
// allows: sync
// scratch: int other[rows * cols]
// scratch: int changed[1]
// scratch: int again[1]
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // cells per block, one per thread
constexpr float DENSITY = 0.5f;
constexpr int ROUNDS = 8;  // per graph

__global__ void begin(const float* __restrict__ x, int* label, int* rounds, int* changed, int* again, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (i == 0) *rounds = *changed = 0, *again = 1;
    if (r < rows && c < cols) label[i] = x[i] < DENSITY ? i : rows * cols;
}

// One sweep: an open cell takes the smallest label among itself and its four neighbours; a closed one keeps rows * cols.
__global__ void sweep(const int* __restrict__ from, int* __restrict__ to, int* changed, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (r >= rows || c >= cols) return;
    int old = from[i], best = old;
    if (old < rows * cols) {
        if (r > 0) best = min(best, from[i - cols]);
        if (r < rows - 1) best = min(best, from[i + cols]);
        if (c > 0) best = min(best, from[i - 1]);
        if (c < cols - 1) best = min(best, from[i + 1]);
    }
    to[i] = best;
    if (changed && best != old) *changed = 1;  // every writer writes the same value
}

// `again` is still what the round before left: behind a round that changed nothing no other does, and none is counted.
__global__ void decide(int* changed, int* again, int* rounds) {
    *rounds += *again;
    *again = *changed;
    *changed = 0;
}

struct Rounds {
    cudaGraphExec_t graph;
    int* flag;  // pinned, so that the graph's copy needs no staging
};

PREPARE(int* label, int* rounds, int* other, int* changed, int* again, int rows, int cols, void** state) {
    if (size_t(rows) * cols >= 1u << 31) return cudaErrorInvalidValue;  // labels and indices are int
    auto eight = new Rounds;
    *state = eight;
    if (cudaError_t code = cudaMallocHost(&eight->flag, sizeof(int))) return code;
    cudaFuncAttributes loaded;  // this call loads the kernels, which a capture must not do
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, sweep)) return code;
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, decide)) return code;
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), block(WIDE, HIGH);
    cudaStream_t recorder;
    if (cudaError_t code = cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking)) return code;
    if (cudaError_t code = cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal)) return code;
    for (int round = 0; round < ROUNDS; round++) {
        sweep<<<grid, block, 0, recorder>>>(label, other, nullptr, rows, cols);
        sweep<<<grid, block, 0, recorder>>>(other, label, changed, rows, cols);
        decide<<<1, 1, 0, recorder>>>(changed, again, rounds);
    }
    if (cudaError_t code = cudaMemcpyAsync(eight->flag, again, sizeof(int), cudaMemcpyDeviceToHost, recorder)) return code;
    cudaGraph_t graph;
    if (cudaError_t code = cudaStreamEndCapture(recorder, &graph)) return code;
    if (cudaError_t code = cudaGraphInstantiate(&eight->graph, graph, 0)) return code;
    if (cudaError_t code = cudaGraphDestroy(graph)) return code;
    return cudaStreamDestroy(recorder);
}

LAUNCH(const float* x, int* label, int* rounds, int* changed, int* again, int rows, int cols, void* state, cudaStream_t stream) {
    const Rounds* eight = static_cast<Rounds*>(state);
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), block(WIDE, HIGH);
    begin<<<grid, block, 0, stream>>>(x, label, rounds, changed, again, rows, cols);
    do {
        if (cudaError_t code = cudaGraphLaunch(eight->graph, stream)) return code;
        if (cudaError_t code = cudaStreamSynchronize(stream)) return code;
    } while (*eight->flag);
    return cudaGetLastError();
}

FINISH(void* state) {
    Rounds* eight = static_cast<Rounds*>(state);
    cudaError_t code = cudaGraphExecDestroy(eight->graph);
    if (!code) code = cudaFreeHost(eight->flag);
    delete eight;
    return code;
}
