// Optimized: one graph takes each request's pointers by an update.
// predicts: baseline 1.87 ms = requests * passes * launch  (the host) on h100
// predicts: optimized 1.15 ms = requests * (passes * 2.2e-6 + graph_launch)  (2.2 us: from an earlier row of 8 kernels per request) on h100
// proves: launches < 0.1 x baseline
// proves: calls cudaGraphExecUpdate >= 16
// has: calls cudaGraphInstantiate == 0
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

struct Replay {
    cudaStream_t recorder;
    cudaGraphExec_t request;
};

PREPARE(const float* x, float* y, float* other, int least, int passes, cudaStream_t stream, void** state) {
    smooth<<<1, THREADS, 0, stream>>>(x, other, least);  // loads the kernel: that happens at its first launch, and a capture must not do it
    if (cudaError_t code = cudaGetLastError()) return code;
    auto replay = new Replay;
    *state = replay;
    if (cudaError_t code = cudaStreamCreateWithFlags(&replay->recorder, cudaStreamNonBlocking)) return code;
    cudaGraph_t graph;
    if (cudaError_t code = capture(x, y, other, least, passes, replay->recorder, &graph)) return code;
    if (cudaError_t code = cudaGraphInstantiate(&replay->request, graph, 0)) return code;
    return cudaGraphDestroy(graph);
}

LAUNCH(const float* x, float* y, float* other, int requests, int least, int passes, void* state, cudaStream_t stream) {
    Replay* replay = static_cast<Replay*>(state);
    for (int r = 0; r < requests; r++) {
        int n = least * (r + 1);
        cudaGraph_t graph;
        cudaGraphExecUpdateResultInfo result;
        if (cudaError_t code = capture(x, y, other, n, passes, replay->recorder, &graph)) return code;
        // Launches in flight keep their arguments; later launches have the new ones.
        if (cudaError_t code = cudaGraphExecUpdate(replay->request, graph, &result)) return code;
        if (cudaError_t code = cudaGraphLaunch(replay->request, stream)) return code;
        if (cudaError_t code = cudaGraphDestroy(graph)) return code;
        x += n, y += n;
    }
    return cudaSuccess;
}

FINISH(void* state) {
    Replay* replay = static_cast<Replay*>(state);
    cudaError_t code = cudaGraphExecDestroy(replay->request);
    if (!code) code = cudaStreamDestroy(replay->recorder);
    delete replay;
    return code;
}
