// Optimized: the occupancy API chooses the size of the block.
// predicts: optimized = 0.781 x baseline  (100 lanes have work of 128 that are issued)
// proves: block > baseline
// proves: counter smsp__thread_inst_executed_per_inst_executed.ratio > 1.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int DEGREE = 128;

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

PREPARE(int rows, int cols, cudaStream_t stream, void** state) {
    int fewest_blocks = 0, threads = 0;
    cudaError_t error = cudaOccupancyMaxPotentialBlockSize(&fewest_blocks, &threads, evaluate, 0, 0);
    *state = reinterpret_cast<void*>(size_t(threads));
    return error;
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream, void* state) {
    size_t threads = reinterpret_cast<size_t>(state);
    evaluate<<<ceil_div(size_t(rows) * cols, threads), threads, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
