// Baseline: a thread loads one e4m3 value, scales it, stores one BF16.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void dequantize(const __nv_fp8_e4m3* __restrict__ cache, const float* __restrict__ scales, __nv_bfloat16* __restrict__ y,
                           int tokens, int width) {
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= unsigned(tokens) * width) return;
    // A request of a warp: one sector of 32 bytes, and 64 bytes stored.
    y[i] = __float2bfloat16(float(cache[i]) * scales[i / width]);
}

LAUNCH(const __nv_fp8_e4m3* cache, const float* scales, __nv_bfloat16* y, int tokens, int width, cudaStream_t stream) {
    if (size_t(tokens) * width >= 1u << 31) return cudaErrorInvalidValue;
    dequantize<<<ceil_div(tokens * width, THREADS), THREADS, 0, stream>>>(cache, scales, y, tokens, width);
    return cudaGetLastError();
}
