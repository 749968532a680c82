// Baseline: a warp loads a tile of its rows, waits for it, smooths it, stores it, and only then asks for the next.
#include "common/cuda/launch.cuh"

constexpr int ROWS = 32;          // a row a lane: what follows in a row waits for what stands before it, so a row is one thread's
constexpr int STEPS = 64;         // of a row in a tile: 256 bytes, 16 lanes share them when the tile is loaded and stored
constexpr int PITCH = STEPS + 4;  // floats: 17 times 16 bytes, so a column of 16-byte groups lies in all banks

__device__ float4* group(float (*tile)[PITCH], int k) {
    return reinterpret_cast<float4*>(&tile[2 * k + threadIdx.x / 16][threadIdx.x % 16 * 4]);
}

// One lane's row of a tile, in place; FMA waits for FMA 64 times.
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

// One block an SM: the compiler may give a lane 255 registers, and so has room for 16 loads at once.
__global__ void __launch_bounds__(32, 1) smooth(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ alignas(16) float tile[ROWS][PITCH];
    const int first = blockIdx.x * ROWS + threadIdx.x / 16;
    float last = 0;
    for (int begin = 0; begin < cols; begin += STEPS) {
        const int c = begin + threadIdx.x % 16 * 4;
        float4 in[ROWS / 2];  // 16 loads in flight for each lane, 8 KB for the warp
#pragma unroll
        for (int k = 0; k < ROWS / 2; k++) {
            // Beyond the matrix the last entries are read again, and not stored: without predicates no load waits for another.
            in[k] = *reinterpret_cast<const float4*>(x + size_t(min(first + 2 * k, rows - 1)) * cols + min(c, cols - 4));
        }
        __syncwarp();  // all have stored what was in the tile
#pragma unroll
        for (int k = 0; k < ROWS / 2; k++) *group(tile, k) = in[k];
        __syncwarp();
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
    if (cols % 4) return cudaErrorInvalidValue;  // a row is whole groups of 16 bytes
    smooth<<<ceil_div(rows, ROWS), 32, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
