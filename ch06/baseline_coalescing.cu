// Baseline: lanes on neighbouring rows: 32 sectors per access.
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // threads of a block

__global__ void scale_columns(const float* x, const float* scale, float* y, int rows, int cols) {
    int r = blockIdx.x * WIDE + threadIdx.x;
    int c = blockIdx.y * HIGH + threadIdx.y;
    if (r < rows && c < cols) y[size_t(r) * cols + c] = x[size_t(r) * cols + c] * scale[c];
}

LAUNCH(const float* x, const float* scale, float* y, int rows, int cols, cudaStream_t stream) {
    dim3 grid(ceil_div(rows, WIDE), ceil_div(cols, HIGH));
    scale_columns<<<grid, dim3(WIDE, HIGH), 0, stream>>>(x, scale, y, rows, cols);
    return cudaGetLastError();
}
