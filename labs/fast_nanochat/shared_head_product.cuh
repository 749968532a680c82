// A warp's product of one row of the head's weights with x.
#pragma once
#include <cuda_bf16.h>

constexpr int LANES = 32, WIDE = 8;  // a lane takes 8 elements, 16 bytes, at once

// This lane's part of the product of `row` and `x`, which are whole 16 bytes and in any memory.
__device__ inline float part_of_product(const __nv_bfloat16* row, const __nv_bfloat16* x, int hidden) {
    float sum = 0;
#pragma unroll 5
    for (int c = threadIdx.x % LANES * WIDE; c < hidden; c += LANES * WIDE) {
        const uint4 w = *reinterpret_cast<const uint4*>(row + c), v = *reinterpret_cast<const uint4*>(x + c);
        const auto ws = reinterpret_cast<const __nv_bfloat162*>(&w), vs = reinterpret_cast<const __nv_bfloat162*>(&v);
#pragma unroll
        for (int p = 0; p < WIDE / 2; p++) {
            const float2 a = __bfloat1622float2(ws[p]), b = __bfloat1622float2(vs[p]);
            sum += a.x * b.x + a.y * b.y;
        }
    }
    return sum;
}

// Writes the sum of a warp's parts.
__device__ inline void write_sum(float part, float* logit) {
    for (int step = LANES / 2; step > 0; step /= 2) part += __shfl_xor_sync(~0u, part, step);
    if (threadIdx.x % LANES == 0) *logit = part;
}
