// Optimized: PTX says what C++ cannot: a row passes the L1 by, comes to the L2 256 bytes at a time, and the next is on its way there.
// expects: 1x, both move 8 bytes an element through DRAM, which takes the time; hints can spare the L2 no more than 4 of its 12, the gains
// needs: tma
// proves: /\bLDG\.E\.NA\.LTC256B\.128\b/
// proves: bulk_l2_prefetch
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 4;  // rows a block

// Not kept in the L1. `.nc` takes the data to stay as it is while the kernel runs: true of a buffer that the all-to-all has filled, and not
// of one that peers still write to.
__device__ float4 load_once(const float4* from) {
    float4 x;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(from));
    return x;
}

// Brings `bytes`, a multiple of 16, to the L2: no register waits for them.
__device__ void prefetch(const void* from, int bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

__global__ void __launch_bounds__(THREADS, 8) gather(const float4* __restrict__ received, const int* __restrict__ slot,
                                                     const float4* __restrict__ gain, float4* y, int rows, int groups) {
    const int first = blockIdx.x * RUN, end = min(first + RUN, rows);
    for (int i = first; i < end; i++) {
        const float4* from = received + size_t(slot[i]) * groups;
        // 16 KB for each of 8 blocks an SM: 17 MB of the L2.
        if (threadIdx.x == 0 && i + 1 < end) prefetch(received + size_t(slot[i + 1]) * groups, 16 * groups);
        // 16 bytes of a row: 16 from DRAM and 16 to it; the gains are 16 KB, and have the L1 to themselves.
#pragma unroll 2
        for (int j = threadIdx.x; j < groups; j += THREADS) {
            float4 x = load_once(from + j), by = gain[j];
            y[size_t(i) * groups + j] = {x.x * by.x, x.y * by.y, x.z * by.z, x.w * by.w};
        }
    }
}

LAUNCH(const float* received, const int* slot, const float* gain, float* y, int rows, int cols, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(received), by = reinterpret_cast<const float4*>(gain);
    gather<<<ceil_div(rows, RUN), THREADS, 0, stream>>>(from, slot, by, reinterpret_cast<float4*>(y), rows, cols / 4);
    return cudaGetLastError();
}
