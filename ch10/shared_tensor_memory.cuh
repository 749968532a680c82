// Copies sums from tensor memory into a panel in shared memory, from which the TMA stores them.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/operands.cuh"
#include "common/cuda/tcgen05.cuh"

// 64 columns of `sums` from `column` on, rounded to bf16. A thread has one row, 8 chunks of 16 bytes. Swizzling puts the chunks of 8 lanes
// into different banks, so a store of 16 bytes per lane takes the least possible number of wavefronts, 4 per warp.
__device__ inline void round_into_panel(uint32_t sums, uint32_t column, unsigned char* panel) {
    const uint32_t row = threadIdx.x % 128;
    uint32_t sum[64];
    tcgen05_fence_after();
    tcgen05_load(sum, tensor_address(sums, row / 32 * 32, column));
    const auto pair = [&](int i) {
        const __nv_bfloat162 rounded = __floats2bfloat162_rn(__uint_as_float(sum[i]), __uint_as_float(sum[i + 1]));
        return reinterpret_cast<const uint32_t&>(rounded);
    };
#pragma unroll
    for (int chunk = 0; chunk < 8; chunk++) {
        const uint4 packed = {pair(8 * chunk), pair(8 * chunk + 2), pair(8 * chunk + 4), pair(8 * chunk + 6)};
        *reinterpret_cast<uint4*>(panel + swizzled(row, chunk)) = packed;
    }
}
