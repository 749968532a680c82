// Baseline: a block per row reads it twice: to sum, then to divide.
#include "shared_block_reduce.cuh"

__global__ void __launch_bounds__(THREADS, 2) softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
    const size_t row = size_t(blockIdx.x) * cols;
    float max = -FLT_MAX, sum = 0;  // of exp(value - max), so far
    for (int first = threadIdx.x; first < cols; first += EACH * THREADS) {
        float value[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) value[i] = i * THREADS < cols - first ? x[row + first + i * THREADS] : -INFINITY;
        const float max_before = max;
#pragma unroll
        for (int i = 0; i < EACH; i++) max = fmaxf(max, value[i]);
        sum *= __expf(max_before - max);
#pragma unroll
        for (int i = 0; i < EACH; i++) sum += __expf(value[i] - max);
    }
    const float row_max = block_reduce<Max>(max);
    const float scale = 1 / block_reduce<Sum>(sum * __expf(max - row_max));
    for (int first = threadIdx.x; first < cols; first += EACH * THREADS) {
        float value[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) value[i] = i * THREADS < cols - first ? x[row + first + i * THREADS] : 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (i * THREADS < cols - first) y[row + first + i * THREADS] = __expf(value[i] - row_max) * scale;
        }
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (size_t(cols) + EACH * THREADS >= 1u << 31) return cudaErrorInvalidValue;  // a thread's next column is an int
    softmax<<<rows, THREADS, 0, stream>>>(x, y, cols);
    return cudaGetLastError();
}
