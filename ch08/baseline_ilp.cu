// Baseline: Horner's rule: one chain of dependent FMAs per thread.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 128;  // 16384 points are 512 warps; an H200 has 528 schedulers, so no two warps share one
constexpr int TILE = 2048;    // taps in shared memory at a time

// a * b + c of complex numbers. Each part is two FMAs, and the second waits 4 cycles for the first.
__device__ float2 multiply_add(float2 a, float2 b, float2 c) {
    return {fmaf(a.x, b.x, fmaf(-a.y, b.y, c.x)), fmaf(a.x, b.y, fmaf(a.y, b.x, c.y))};
}

__global__ void respond(const float* __restrict__ h, const float2* __restrict__ zs, float2* __restrict__ ys, int points, int taps) {
    __shared__ alignas(16) float tile[TILE];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float2 z = i < points ? zs[i] : float2{}, y = {};
    for (int first = (taps - 1) / TILE * TILE; first >= 0; first -= TILE) {
        __syncthreads();
#pragma unroll
        for (int pass = 0; pass < TILE; pass += THREADS) {
            int k = pass + threadIdx.x;
            tile[k] = first + k < taps ? h[first + k] : 0;
        }
        __syncthreads();
#pragma unroll 32
        for (int k = TILE - 1; k >= 0; k--) y = multiply_add(y, z, {tile[k], 0});
    }
    if (i < points) ys[i] = y;
}

LAUNCH(const float* h, const float* z, float* y, int points, int taps, cudaStream_t stream) {
    if (!aligned(sizeof(float2), z, y)) return cudaErrorMisalignedAddress;
    auto zs = reinterpret_cast<const float2*>(z);
    respond<<<ceil_div(points, THREADS), THREADS, 0, stream>>>(h, zs, reinterpret_cast<float2*>(y), points, taps);
    return cudaGetLastError();
}
