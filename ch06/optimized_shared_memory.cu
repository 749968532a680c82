// Optimized: a tile in shared memory, and four weights per access.
// predicts: optimized = 0.628 x baseline  (162 wavefronts per warp instead of 258: four weights come in one)
// proves: bar_sync
// proves: fewer ld_readonly
// has: lds_128bit
#include "common/cuda/launch.cuh"

constexpr int TAPS = 129;
constexpr int THREADS = 256;

__global__ void average(const float* __restrict__ x, const float* __restrict__ weights, float* y, int n) {
    __shared__ float tile[THREADS + TAPS - 1];
    __shared__ alignas(16) float taps[TAPS];
    int i = blockIdx.x * THREADS + threadIdx.x, end = n + TAPS - 1;
    tile[threadIdx.x] = i < end ? x[i] : 0;
    if (threadIdx.x < TAPS - 1) tile[THREADS + threadIdx.x] = i + THREADS < end ? x[i + THREADS] : 0;
    if (threadIdx.x < TAPS) taps[threadIdx.x] = weights[threadIdx.x];
    __syncthreads();
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < TAPS; k++) sum = fmaf(taps[k], tile[threadIdx.x + k], sum);
    y[i] = sum;
}

LAUNCH(const float* x, const float* weights, float* y, int n, cudaStream_t stream) {
    if (size_t(n) + 2 * THREADS >= 1u << 31) return cudaErrorInvalidValue;  // indices up to the end of the last tile are int
    average<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, weights, y, n);
    return cudaGetLastError();
}
