// Baseline: ordinary loads. Whatever a block reads passes through the L1, the rows that nobody reads twice as well as the gains.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 4;  // rows a block

__global__ void __launch_bounds__(THREADS, 8) gather(const float4* __restrict__ received, const int* __restrict__ slot,
                                                     const float4* __restrict__ gain, float4* y, int rows, int groups) {
    const int first = blockIdx.x * RUN, end = min(first + RUN, rows);
    for (int i = first; i < end; i++) {
        const float4* from = received + size_t(slot[i]) * groups;
        // 16 bytes of a row: 16 from DRAM and 16 to it; the gains are 16 KB, and lie in the L1 or in the L2.
#pragma unroll 2
        for (int j = threadIdx.x; j < groups; j += THREADS) {
            float4 x = from[j], by = gain[j];
            y[size_t(i) * groups + j] = {x.x * by.x, x.y * by.y, x.z * by.z, x.w * by.w};
        }
    }
}

LAUNCH(const float* received, const int* slot, const float* gain, float* y, int rows, int cols, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(received), by = reinterpret_cast<const float4*>(gain);
    gather<<<ceil_div(rows, RUN), THREADS, 0, stream>>>(from, slot, by, reinterpret_cast<float4*>(y), rows, cols / 4);
    return cudaGetLastError();
}
