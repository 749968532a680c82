// Optimized: one warp a row, so its lanes read neighbouring addresses, and shuffles add the lanes up.
// predicts: optimized = 0.5 x baseline  (an estimate from bytes or operations, written before anything is measured)
// proves: shfl
#include "common/cuda/launch.cuh"

constexpr int THREADS = 128;
constexpr int LANES = 32;

__global__ void sum_rows(const float* x, float* y, int rows, int cols) {
    int row = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    int lane = threadIdx.x % LANES;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = lane; c < cols; c += LANES) sum += x[size_t(row) * cols + c];
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) y[row] = sum;
}

// Arguments are bound by name: inputs are const, other pointers outputs, numbers entries of the shape.
LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    sum_rows<<<ceil_div(rows * LANES, THREADS), THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
