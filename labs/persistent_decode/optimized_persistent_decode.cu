// Optimized: one kernel a token: blocks stay, and meet at barriers.
// predicts: baseline 111 us = (layers * 12 + 3) * 2.1e-6 + 8e6 / dram_read + graph_launch on h100    (12 kernels a layer, 2.1 us each)
// predicts: optimized 62.3 us = (layers * 5 + 1) * 2.5e-6 + 8e6 / dram_read + 2 * launch on h100  (21 phases; a memset and a kernel)
// proves: kernels == 1
// has: spills == 0
// scratch: float x[hidden]
// scratch: float q[heads * 64]
// scratch: float partial[heads * (context / 64 + 1) * 66]
// scratch: float act[inner]
// scratch: int arrived[1]
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_phases.cuh"

// All blocks have come `round` times, and see what the others wrote before. A cooperative launch promises that all of them run.
__device__ void grid_barrier(int* arrived, int round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(arrived) : "memory");
        int seen;
        do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        while (seen < round * int(gridDim.x));
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) decode(const Step s) {
    __shared__ __align__(16) float h[MOST];
    const int warp = threadIdx.x / LANES * gridDim.x + blockIdx.x, warps = WARPS * gridDim.x, splits = ceil_div(s.context, SPLIT);
    const bool writes = threadIdx.x % LANES == 0;
    int round = 0;
    for (int layer = 0; layer < s.layers; layer++) {
        normalize(h, s, s.norms + size_t(layer) * 2 * s.hidden, layer > 0);
        for (int p = warp; p < (s.heads + 2 * s.kv) * HALF; p += warps) project(s, h, layer, p);
        grid_barrier(s.arrived, ++round);
        for (int u = warp; u < s.heads * splits; u += warps) attend(s, layer, u, splits);
        grid_barrier(s.arrived, ++round);
        merge(h, s, splits);
        for (int r = warp; r < s.hidden; r += warps) {
            const float sum = dot(s.o + (size_t(layer) * s.hidden + r) * s.heads * DIM, h, s.heads * DIM);
            if (writes) s.x[r] = residual(s, r, layer > 0) + sum;
        }
        grid_barrier(s.arrived, ++round);
        normalize(h, s, s.norms + (size_t(layer) * 2 + 1) * s.hidden, true);
        for (int r = warp; r < s.inner; r += warps) {
            const Element* row = s.gate_up + (size_t(layer) * 2 * s.inner + r) * s.hidden;
            const float gate = dot(row, h, s.hidden), up = dot(row + size_t(s.inner) * s.hidden, h, s.hidden);
            if (writes) s.act[r] = gate / (1 + __expf(-gate)) * up;
        }
        grid_barrier(s.arrived, ++round);
        for (int i = threadIdx.x; i < s.inner; i += THREADS) h[i] = s.act[i];
        __syncthreads();
        for (int r = warp; r < s.hidden; r += warps) {
            const float sum = dot(s.down + (size_t(layer) * s.hidden + r) * s.inner, h, s.inner);
            if (writes) s.x[r] += sum;
        }
        grid_barrier(s.arrived, ++round);
    }
    normalize(h, s, s.last_norm, true);
    for (int r = warp; r < s.vocabulary; r += warps) {
        const float sum = dot(s.embedding + size_t(r) * s.hidden, h, s.hidden);
        if (writes) s.logits[r] = __float2bfloat16(sum);
    }
}

LAUNCH(const int* token, const __nv_bfloat16* embedding, const __nv_bfloat16* qkv, const __nv_bfloat16* o, const __nv_bfloat16* gate_up,
       const __nv_bfloat16* down, const __nv_bfloat16* norms, const __nv_bfloat16* last_norm, const float* turn, __nv_bfloat16* keys,
       __nv_bfloat16* values, __nv_bfloat16* logits, float* x, float* q, float* partial, float* act, int* arrived, int layers, int hidden,
       int heads, int kv, int inner, int vocabulary, int context, cudaStream_t stream) {
    if (hidden % 8 || inner % 8 || hidden > MOST || inner > MOST || heads * DIM > MOST || heads % kv) return cudaErrorInvalidValue;
    if (!aligned(16, embedding, qkv, o, gate_up, down, keys)) return cudaErrorMisalignedAddress;
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    if (cudaError_t code = cudaMemsetAsync(arrived, 0, sizeof(int), stream)) return code;
    const Step step{token, embedding, qkv,     o,   gate_up, down,   norms,  last_norm, turn, keys,  values,     logits,
                    x,     q,         partial, act, arrived, layers, hidden, heads,     kv,   inner, vocabulary, context};
    cudaLaunchAttribute together;
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = sms, launch.blockDim = THREADS, launch.stream = stream, launch.attrs = &together, launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, decode, step);
}
