// Optimized: the TMA loads the next tile, one bulk copy per row.
// predicts: baseline 0.112 ms = (1000 + 730) * cols / 64 / sm_clock on h200  (cycles per tile: latency + instructions)
// predicts: optimized 0.0931 ms = (440 + 1000) * cols / 64 / sm_clock on h200  (cycles per tile: one lane issues 32 copies in 440)
// needs: tma
// instead: ch07:async_prefetch
// proves: bulk_copy_g2s
// proves: mbarrier_try_wait
// has: mbarrier_init
// has: mbarrier_expect_tx
// has: fence_proxy_async_shared
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"

constexpr int ROWS = 32;          // rows per block, one per lane: this pair keeps a row's steps in order (see the workload)
constexpr int STEPS = 64;         // floats per row of a tile: 256 bytes, which 16 lanes load and store together
constexpr int PITCH = STEPS + 4;  // floats from row to row: 17 groups of 16 bytes, so a column of groups spans all 32 banks

__device__ float4* group(float (*tile)[PITCH], int k) {
    return reinterpret_cast<float4*>(&tile[2 * k + threadIdx.x / 16][threadIdx.x % 16 * 4]);
}

// Smooths one lane's row of a tile in place: a chain of 64 dependent FMAs.
__device__ float smooth_row(float* row, float last) {
#pragma unroll
    for (int t = 0; t < STEPS; t += 4) {
        float4 v = *reinterpret_cast<float4*>(row + t);
        v.x = last = fmaf(0.9375f, last, 0.0625f * v.x);
        v.y = last = fmaf(0.9375f, last, 0.0625f * v.y);
        v.z = last = fmaf(0.9375f, last, 0.0625f * v.z);
        v.w = last = fmaf(0.9375f, last, 0.0625f * v.w);
        *reinterpret_cast<float4*>(row + t) = v;
    }
    return last;
}

// One lane requests all rows of the tile that begins at column `begin`, one bulk copy of 256 bytes per row, without a tensor map.
// Beyond the matrix the last row is read again and not stored.
// The lane is elected: elect.sync tells the compiler that one lane is active. For `threadIdx.x == 0` it emits a loop over active lanes.
// PTX ISA, cp.async.bulk: addresses and sizes are multiples of 16 bytes. The barrier counts the bytes as they arrive.
__device__ void prefetch(float (*tile)[PITCH], const float* x, int begin, int rows, int cols, uint64_t* loaded) {
    if (!elect()) return;
    const uint32_t bytes = min(STEPS, cols - begin) * sizeof(float);
    barrier_expect(loaded, ROWS * bytes);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float* from = x + size_t(min(int(blockIdx.x) * ROWS + r, rows - 1)) * cols + begin;
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(tile[r])),
            "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(loaded))
            : "memory");
    }
}

// At least one block per SM: a lane may have 255 registers.
__global__ void __launch_bounds__(32, 1) smooth(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ alignas(16) float tiles[2][ROWS][PITCH];
    __shared__ uint64_t loaded[2];
    if (threadIdx.x == 0) {
        barrier_init(&loaded[0], 1);
        barrier_init(&loaded[1], 1);
    }
    __syncwarp();
    const int first = blockIdx.x * ROWS + threadIdx.x / 16;
    float last = 0;
    prefetch(tiles[0], x, 0, rows, cols, &loaded[0]);
    for (int begin = 0; begin < cols; begin += STEPS) {
        const int c = begin + threadIdx.x % 16 * 4, step = begin / STEPS, now = step % 2, next = 1 - now;
        barrier_wait(&loaded[now], step / 2 % 2);  // each barrier completes a phase every second tile; the first phase is 0
        show_to_async_proxy();
        __syncwarp();  // all lanes have stored the other tile, so the TMA may overwrite it
        if (begin + STEPS < cols) prefetch(tiles[next], x, begin + STEPS, rows, cols, &loaded[next]);
        auto tile = tiles[now];
        last = smooth_row(tile[threadIdx.x], last);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < ROWS / 2; k++) {
            const int r = first + 2 * k;
            if (r < rows && c < cols) *reinterpret_cast<float4*>(y + size_t(r) * cols + c) = *group(tile, k);
        }
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (cols % 4) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    smooth<<<ceil_div(rows, ROWS), 32, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
