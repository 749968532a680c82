// Optimized: a thread loads sixteen e4m3 values at once.
// predicts: baseline 0.218 ms = tokens * width / 32 * 35 / (sm_count * 3 * 1.7e9) on h100  (35 instructions per warp, 3 per cycle)
// predicts: optimized 0.131 ms = 3 * tokens * width / dram_copy on h100  (one byte read and two written per value)
// proves: ld_128bit
// proves: st_128bit
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int WIDTH = 16;  // values per thread: 16 bytes loaded, 32 stored

__global__ void dequantize(const __nv_fp8_e4m3* __restrict__ cache, const float* __restrict__ scales, __nv_bfloat16* __restrict__ y,
                           int tokens, int width) {
    const unsigned i = (blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (i >= unsigned(tokens) * width) return;
    // Rows are multiples of 16 values, so all 16 have one scale.
    const float scale = scales[i / width];
    const uint4 packed = *reinterpret_cast<const uint4*>(cache + i);
    const __nv_fp8x2_storage_t* pairs = reinterpret_cast<const __nv_fp8x2_storage_t*>(&packed);
    uint4 out[2];
    __nv_bfloat162* two = reinterpret_cast<__nv_bfloat162*>(out);
#pragma unroll
    for (int k = 0; k < WIDTH / 2; k++) {
        const float2 v = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pairs[k], __NV_E4M3)));
        two[k] = __floats2bfloat162_rn(v.x * scale, v.y * scale);
    }
    uint4* to = reinterpret_cast<uint4*>(y + i);
    to[0] = out[0];
    to[1] = out[1];
}

LAUNCH(const __nv_fp8_e4m3* cache, const float* scales, __nv_bfloat16* y, int tokens, int width, cudaStream_t stream) {
    if (width % WIDTH || size_t(tokens) * width >= 1u << 31) return cudaErrorInvalidValue;
    if (!aligned(16, cache, y)) return cudaErrorMisalignedAddress;
    dequantize<<<ceil_div(tokens * width, THREADS * WIDTH), THREADS, 0, stream>>>(cache, scales, y, tokens, width);
    return cudaGetLastError();
}
