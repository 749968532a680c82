// Baseline: one thread a row, so the lanes of a warp read addresses a whole row apart.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 128;

__global__ void sum_rows(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += x[size_t(row) * cols + c];
    y[row] = sum;
}

// Arguments are bound by name: inputs are const, other pointers outputs, numbers entries of the shape.
LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    sum_rows<<<ceil_div(rows, THREADS), THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
