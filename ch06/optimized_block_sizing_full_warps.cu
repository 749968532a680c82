// Optimized: threads counted over the whole table, in blocks of 256.
// predicts: full_warps = 0.781 x baseline  (100 lanes have work of 128 that are issued)
// proves: block > baseline
// proves: counter smsp__thread_inst_executed_per_inst_executed.ratio > 1.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int DEGREE = 128;
constexpr int THREADS = 256;

__device__ float polynomial(float x) {
    float y = 0;
#pragma unroll
    for (int k = DEGREE; k >= 0; k--) y = fmaf(y, x, (37 * k % 131 - 65) / 64.0f);
    return y;
}

__global__ void evaluate(const float* x, float* y, int rows, int cols) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size_t(rows) * cols) y[i] = polynomial(x[i]);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    evaluate<<<ceil_div(size_t(rows) * cols, size_t(THREADS)), THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
