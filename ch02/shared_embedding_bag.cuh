// The kernel of memory_tiers: a warp adds the rows of a table that a bag of ids names. It does not know which memory the table lies in.
#pragma once
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int LANES = 32;
constexpr int WARPS = 8;  // per block; one bag per warp

// y[b] = sum over i of table[ids[b, i]]; rows of `width` floats, a multiple of 4
__global__ void sum_bags(const float* __restrict__ table, const int* __restrict__ ids, float* __restrict__ y, int bags, int per_bag,
                         int width) {
    const int bag = blockIdx.x * WARPS + threadIdx.x / LANES;
    if (bag >= bags) return;
    const int* mine = ids + size_t(bag) * per_bag;
    const int quads = width / 4;
    for (int c = threadIdx.x % LANES; c < quads; c += LANES) {
        float4 sum = {0, 0, 0, 0};
#pragma unroll 8
        for (int i = 0; i < per_bag; i++) {  // eight loads per lane are in flight
            const float4 row = reinterpret_cast<const float4*>(table)[size_t(mine[i]) * quads + c];
            sum.x += row.x, sum.y += row.y, sum.z += row.z, sum.w += row.w;
        }
        reinterpret_cast<float4*>(y)[size_t(bag) * quads + c] = sum;
    }
}

inline cudaError_t launch_bags(const float* table, const int* ids, float* y, int bags, int per_bag, int width, cudaStream_t stream) {
    if (width % 4) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (!aligned(16, table, y)) return cudaErrorMisalignedAddress;
    sum_bags<<<ceil_div(bags, WARPS), WARPS * LANES, 0, stream>>>(table, ids, y, bags, per_bag, width);
    return cudaGetLastError();
}
