// Optimized: a graph is captured and instantiated per request.
// predicts: instantiate 1.60 ms = requests * (passes * (1e-6 + 1.5e-6) + 20e-6)  (2.5 and 20 us fit an earlier row of 8 kernels) on h100
// proves: calls cudaGraphInstantiate >= 16
// proves: launches < 0.1 x baseline
// scratch: float other[least * requests]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void smooth(const float* __restrict__ from, float* __restrict__ to, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    to[i] = 0.25f * from[max(i - 1, 0)] + 0.5f * from[i] + 0.25f * from[min(i + 1, n - 1)];
}

// The graph of one request, captured: a kernel per pass, the last of which writes y.
cudaError_t capture(const float* x, float* y, float* other, int n, int passes, cudaStream_t recorder, cudaGraph_t* graph) {
    if (cudaError_t code = cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal)) return code;
    const float* from = x;
    for (int left = passes; left > 0; left--) {
        float* to = left % 2 ? y : other;
        smooth<<<ceil_div(n, THREADS), THREADS, 0, recorder>>>(from, to, n);
        from = to;
    }
    return cudaStreamEndCapture(recorder, graph);
}

PREPARE(const float* x, float* y, float* other, int least, cudaStream_t stream, void** state) {
    smooth<<<1, THREADS, 0, stream>>>(x, other, least);  // loads the kernel: that happens at its first launch, and a capture must not do it
    if (cudaError_t code = cudaGetLastError()) return code;
    return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(state), cudaStreamNonBlocking);  // to capture from
}

LAUNCH(const float* x, float* y, float* other, int requests, int least, int passes, void* state, cudaStream_t stream) {
    cudaStream_t recorder = static_cast<cudaStream_t>(state);
    for (int r = 0; r < requests; r++) {
        int n = least * (r + 1);
        cudaGraph_t graph;
        cudaGraphExec_t request;
        if (cudaError_t code = capture(x, y, other, n, passes, recorder, &graph)) return code;
        if (cudaError_t code = cudaGraphInstantiate(&request, graph, 0)) return code;
        if (cudaError_t code = cudaGraphLaunch(request, stream)) return code;
        if (cudaError_t code = cudaGraphExecDestroy(request)) return code;  // launches in flight complete first
        if (cudaError_t code = cudaGraphDestroy(graph)) return code;
        x += n, y += n;
    }
    return cudaSuccess;
}

FINISH(void* state) { return cudaStreamDestroy(static_cast<cudaStream_t>(state)); }
