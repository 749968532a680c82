// Optimized: a WHILE node repeats the round, not the host.
// predicts: baseline 1.42 ms = 57 * (3 * launch + 14e-6)  (57 rounds on average; 14 us for the kernels, the copy and the wait, assumed)
// predicts: optimized 0.57 ms = 57 * (3 * 2e-6 + 4e-6)  (a kernel of the graph 2 us, an iteration 4 us, both assumed) on h100
// proves: launches <= 2
// proves: calls cudaStreamSynchronize == 0
// proves: /\bCALL\.ABS\.NOINC\b/ in decide
// scratch: int other[rows * cols]
// scratch: int changed[1]
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // cells per block, one per thread
constexpr float DENSITY = 0.5f;

__global__ void begin(const float* __restrict__ x, int* label, int* rounds, int* changed, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (i == 0) *rounds = *changed = 0;
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

__global__ void decide(int* changed, cudaGraphConditionalHandle again, int* rounds) {
    cudaGraphSetConditional(again, *changed);
    *changed = 0;
    *rounds += 1;
}

// The body of the WHILE node: one round, captured from a stream of its own.
cudaError_t capture_round(cudaGraph_t body, int* label, int* rounds, int* other, int* changed, int rows, int cols,
                          cudaGraphConditionalHandle again) {
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), block(WIDE, HIGH);
    cudaStream_t recorder;
    if (cudaError_t code = cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking)) return code;
    const cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    if (cudaError_t code = cudaStreamBeginCaptureToGraph(recorder, body, nullptr, nullptr, 0, mode)) return code;
    sweep<<<grid, block, 0, recorder>>>(label, other, nullptr, rows, cols);
    sweep<<<grid, block, 0, recorder>>>(other, label, changed, rows, cols);
    decide<<<1, 1, 0, recorder>>>(changed, again, rounds);
    if (cudaError_t code = cudaStreamEndCapture(recorder, &body)) return code;
    return cudaStreamDestroy(recorder);
}

PREPARE(int* label, int* rounds, int* other, int* changed, int rows, int cols, void** state) {
    if (size_t(rows) * cols >= 1u << 31) return cudaErrorInvalidValue;  // labels and indices are int
    cudaFuncAttributes loaded;                                          // this call loads the kernels, which a capture must not do
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, sweep)) return code;
    if (cudaError_t code = cudaFuncGetAttributes(&loaded, decide)) return code;
    cudaGraph_t graph;
    cudaGraphNode_t loop;
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.type = cudaGraphCondTypeWhile;
    node.conditional.size = 1;
    if (cudaError_t code = cudaGraphCreate(&graph, 0)) return code;
    // The condition is 1 whenever the graph is launched, so the first round always runs.
    if (cudaError_t code = cudaGraphConditionalHandleCreate(&node.conditional.handle, graph, 1, cudaGraphCondAssignDefault)) return code;
    if (cudaError_t code = cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &node)) return code;
    cudaGraph_t body = node.conditional.phGraph_out[0];
    if (cudaError_t code = capture_round(body, label, rounds, other, changed, rows, cols, node.conditional.handle)) return code;
    cudaGraphExec_t solve;
    if (cudaError_t code = cudaGraphInstantiate(&solve, graph, 0)) return code;
    *state = solve;
    return cudaGraphDestroy(graph);
}

LAUNCH(const float* x, int* label, int* rounds, int* changed, int rows, int cols, void* state, cudaStream_t stream) {
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), block(WIDE, HIGH);
    begin<<<grid, block, 0, stream>>>(x, label, rounds, changed, rows, cols);
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);
}

FINISH(void* state) { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(state)); }
