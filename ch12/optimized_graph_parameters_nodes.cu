// Optimized: arguments are set node by node: nothing is captured again.
// predicts: baseline 0.64 ms = 16 * (8 * 1e-6 + 32e-6)  (capture 1 us per kernel; instantiate, launch and destroy 32 us, assumed) on h100
// predicts: optimized 0.26 ms = 16 * (8 * 1.4e-6 + 5e-6)  (the device: 1.4 us per kernel of a graph, 5 us to start one, assumed) on h100
// proves: calls cudaGraphExecDestroy == 0
// proves: calls cudaStreamBeginCapture == 0
// proves: calls cudaGraphExecKernelNodeSetParams >= 8
// scratch: float other[least * requests]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, PASSES = 8;

__global__ void smooth(const float* __restrict__ from, float* __restrict__ to, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    to[i] = 0.25f * from[max(i - 1, 0)] + 0.5f * from[i] + 0.25f * from[min(i + 1, n - 1)];
}

struct Replay {
    cudaGraph_t graph;  // its nodes identify those of the instantiated graph
    cudaGraphNode_t nodes[PASSES];
    cudaGraphExec_t request;
};

// Calls `each(pass, params)` with the launch parameters of every kernel of a request; the last kernel writes y.
template <typename Each>
cudaError_t for_each_pass(const float* x, float* y, float* other, int n, Each each) {
    const float* from = x;
    for (int pass = 0; pass < PASSES; pass++) {
        float* to = (PASSES - pass) % 2 ? y : other;
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

PREPARE(const float* x, float* y, float* other, int least, void** state) {
    auto replay = new Replay;
    *state = replay;
    if (cudaError_t code = cudaGraphCreate(&replay->graph, 0)) return code;
    cudaError_t code = for_each_pass(x, y, other, least, [&](int pass, const cudaKernelNodeParams& params) {
        return cudaGraphAddKernelNode(&replay->nodes[pass], replay->graph, replay->nodes + pass - 1, pass ? 1 : 0, &params);
    });
    return code ? code : cudaGraphInstantiate(&replay->request, replay->graph, 0);
}

LAUNCH(const float* x, float* y, float* other, int requests, int least, void* state, cudaStream_t stream) {
    Replay* replay = static_cast<Replay*>(state);
    for (int r = 0; r < requests; r++) {
        int n = least * (r + 1);
        // Launches in flight keep their arguments; later launches have the new ones.
        cudaError_t code = for_each_pass(x, y, other, n, [&](int pass, const cudaKernelNodeParams& params) {
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
