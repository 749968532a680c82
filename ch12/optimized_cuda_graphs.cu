// Optimized: captured once as a graph: one launch per call.
// predicts: baseline 0.240 ms = steps * 2.4e-6  (the host's time per launch, assumed)
// predicts: optimized 0.158 ms = 8e-6 + steps * 1.5e-6  (the start of a graph, and the device's time per kernel, both assumed)
// proves: launches == 1
// proves: graph_nodes > 1
// scratch: float other[rows * cols]
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // cells per block, one per thread

__global__ void diffuse(const float* __restrict__ from, float* __restrict__ to, int rows, int cols, float rate) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (r >= rows || c >= cols) return;
    bool edge = r == 0 || c == 0 || r == rows - 1 || c == cols - 1;
    float here = from[i];
    to[i] = edge ? here : here + rate * (from[i - cols] + from[i + cols] + from[i - 1] + from[i + 1] - 4 * here);
}

cudaError_t chain(const float* x, float* y, float* other, int rows, int cols, float rate, int steps, cudaStream_t stream) {
    if (size_t(rows) * cols >= 1u << 31) return cudaErrorInvalidValue;  // the kernel counts cells in an int
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH));
    const float* from = x;
    for (int left = steps; left > 0; left--) {
        float* to = left % 2 ? y : other;  // so that the last step writes y
        diffuse<<<grid, dim3(WIDE, HIGH), 0, stream>>>(from, to, rows, cols, rate);
        from = to;
    }
    return cudaGetLastError();
}

PREPARE(const float* x, float* y, float* other, int rows, int cols, float rate, int steps, cudaStream_t stream, void** state) {
    // Once uncaptured: the first launch of a kernel loads it, which a capture must not do.
    if (cudaError_t code = chain(x, y, other, rows, cols, rate, steps, stream)) return code;
    cudaStream_t recorder;  // a stream of its own: the default stream cannot be captured
    if (cudaError_t code = cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking)) return code;
    if (cudaError_t code = cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal)) return code;
    if (cudaError_t code = chain(x, y, other, rows, cols, rate, steps, recorder)) return code;
    cudaGraph_t graph;  // holds pointers: a replay reads what they point to at that time
    if (cudaError_t code = cudaStreamEndCapture(recorder, &graph)) return code;
    cudaGraphExec_t replay;
    if (cudaError_t code = cudaGraphInstantiate(&replay, graph, 0)) return code;
    *state = replay;
    if (cudaError_t code = cudaGraphDestroy(graph)) return code;
    return cudaStreamDestroy(recorder);
}

LAUNCH(float* y, void* state, cudaStream_t stream) {  // y is where the graph writes
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(state), stream);
}

FINISH(void* state) { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(state)); }
