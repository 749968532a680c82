// Optimized: arguments are set node by node: nothing is captured again.
// predicts: baseline 1.87 ms = requests * passes * launch  (the host) on h100
// predicts: optimized 0.829 ms = requests * (passes * 1.4e-6 + 7e-6)  (on the device; 7 us to start a graph; assumed) on h100
// proves: launches < 0.1 x baseline
// proves: calls cudaGraphExecKernelNodeSetParams >= 512
// has: calls cudaGraphInstantiate == 0
// has: calls cudaStreamBeginCapture == 0
// scratch: float other[least * requests]
#include <vector>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void smooth(const float* __restrict__ from, float* __restrict__ to, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    to[i] = 0.25f * from[max(i - 1, 0)] + 0.5f * from[i] + 0.25f * from[min(i + 1, n - 1)];
}

struct Replay {
    cudaGraph_t graph;                   // its nodes identify those of the instantiated graph
    std::vector<cudaGraphNode_t> nodes;  // a kernel each, in order
    cudaGraphExec_t request;
};

// Calls `each(pass, params)` with the launch parameters of every kernel of a request; the last kernel writes y.
template <typename Each>
cudaError_t for_each_pass(const float* x, float* y, float* other, int n, int passes, Each each) {
    const float* from = x;
    for (int pass = 0; pass < passes; pass++) {
        float* to = (passes - pass) % 2 ? y : other;
        void* arguments[] = {&from, &to, &n};
        cudaKernelNodeParams params = {};
        params.func = reinterpret_cast<void*>(smooth);
        params.gridDim = ceil_div(n, THREADS);
        params.blockDim = THREADS;
        params.kernelParams = arguments;
        if (cudaError_t code = each(pass, params)) return code;
        from = to;
    }
    return cudaSuccess;
}

PREPARE(const float* x, float* y, float* other, int least, int passes, void** state) {
    auto replay = new Replay{{}, std::vector<cudaGraphNode_t>(passes), {}};
    *state = replay;
    if (cudaError_t code = cudaGraphCreate(&replay->graph, 0)) return code;
    cudaError_t code = for_each_pass(x, y, other, least, passes, [&](int pass, const cudaKernelNodeParams& params) {
        const cudaGraphNode_t* before = pass ? &replay->nodes[pass - 1] : nullptr;
        return cudaGraphAddKernelNode(&replay->nodes[pass], replay->graph, before, pass ? 1 : 0, &params);
    });
    return code ? code : cudaGraphInstantiate(&replay->request, replay->graph, 0);
}

LAUNCH(const float* x, float* y, float* other, int requests, int least, int passes, void* state, cudaStream_t stream) {
    Replay* replay = static_cast<Replay*>(state);
    for (int r = 0; r < requests; r++) {
        int n = least * (r + 1);
        // Launches in flight keep their arguments; later launches have the new ones.
        cudaError_t code = for_each_pass(x, y, other, n, passes, [&](int pass, const cudaKernelNodeParams& params) {
            return cudaGraphExecKernelNodeSetParams(replay->request, replay->nodes[pass], &params);
        });
        if (code) return code;
        if (cudaError_t code = cudaGraphLaunch(replay->request, stream)) return code;
        x += n, y += n;
    }
    return cudaSuccess;
}

FINISH(void* state) {
    Replay* replay = static_cast<Replay*>(state);
    cudaError_t code = cudaGraphExecDestroy(replay->request);
    if (!code) code = cudaGraphDestroy(replay->graph);
    delete replay;
    return code;
}
