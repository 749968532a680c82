// Baseline: a block per row: of 100 entries, the last warp has 4.
#include "common/cuda/launch.cuh"

constexpr int DEGREE = 128;
constexpr int MOST = 1024;  // threads a block

__device__ float polynomial(float x) {
    float y = 0;
#pragma unroll
    for (int k = DEGREE; k >= 0; k--) y = fmaf(y, x, (37 * k % 131 - 65) / 64.0f);
    return y;
}

__global__ void evaluate(const float* x, float* y, int rows, int cols) {
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        size_t i = size_t(blockIdx.x) * cols + c;
        y[i] = polynomial(x[i]);
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    int threads = cols < MOST ? cols : MOST;
    evaluate<<<rows, threads, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
