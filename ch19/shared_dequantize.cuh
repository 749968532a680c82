// Dequantizing e4m3 to BF16 by vectors: a thread has WIDTH values, one load of WIDTH bytes and WIDTH / 8 stores of 16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

template <int WIDTH>
struct alignas(WIDTH) Packed {
    __nv_fp8x2_storage_t pairs[WIDTH / 2];
};

template <int WIDTH>
__global__ void dequantize(const __nv_fp8_e4m3* __restrict__ cache, const float* __restrict__ scales, __nv_bfloat16* __restrict__ y,
                           int tokens, int width) {
    const unsigned i = (blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (i >= unsigned(tokens) * width) return;
    // Rows are multiples of WIDTH values, so all of a thread's have one scale.
    const float scale = scales[i / width];
    const Packed<WIDTH> packed = *reinterpret_cast<const Packed<WIDTH>*>(cache + i);
    uint4 out[WIDTH / 8];
    __nv_bfloat162* two = reinterpret_cast<__nv_bfloat162*>(out);
#pragma unroll
    for (int k = 0; k < WIDTH / 2; k++) {
        const float2 v = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(packed.pairs[k], __NV_E4M3)));
        two[k] = __floats2bfloat162_rn(v.x * scale, v.y * scale);
    }
#pragma unroll
    for (int k = 0; k < WIDTH / 8; k++) reinterpret_cast<uint4*>(y + i)[k] = out[k];
}

template <int WIDTH>
cudaError_t dequantize_by(const __nv_fp8_e4m3* cache, const float* scales, __nv_bfloat16* y, int tokens, int width, cudaStream_t stream) {
    if (width % WIDTH || size_t(tokens) * width >= 1u << 31) return cudaErrorInvalidValue;
    if (!aligned(16, cache, y)) return cudaErrorMisalignedAddress;
    dequantize<WIDTH><<<ceil_div(tokens * width, THREADS * WIDTH), THREADS, 0, stream>>>(cache, scales, y, tokens, width);
    return cudaGetLastError();
}
