// Baseline: one kernel for norms, one to scale: 3 passes over DRAM.
// scratch: float scales[rows]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;  // one block per row

__device__ float sum_over_block(float value) {
    __shared__ float sums[THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (float each : sums) sum += each;
    return sum;
}

__global__ void reduce(const float* __restrict__ x, float* __restrict__ scales, int cols, float eps) {
    size_t row = size_t(blockIdx.x) * cols;
    float sum = 0;
    // Per element: 4 bytes read.
    for (int c = threadIdx.x; c < cols; c += THREADS) sum += x[row + c] * x[row + c];
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) scales[blockIdx.x] = 1 / fmaxf(sqrtf(sum), eps);
}

__global__ void scale(const float* __restrict__ x, const float* __restrict__ scales, float* __restrict__ y, int cols) {
    size_t row = size_t(blockIdx.x) * cols;
    float factor = scales[blockIdx.x];
    // Per element: 4 bytes read, 4 bytes written.
    for (int c = threadIdx.x; c < cols; c += THREADS) y[row + c] = x[row + c] * factor;
}

LAUNCH(const float* x, float* y, float* scales, int rows, int cols, float eps, cudaStream_t stream) {
    reduce<<<rows, THREADS, 0, stream>>>(x, scales, cols, eps);
    scale<<<rows, THREADS, 0, stream>>>(x, scales, y, cols);
    return cudaGetLastError();
}
