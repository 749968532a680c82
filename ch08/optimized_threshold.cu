// Optimized: every thread loads the gain and computes both answers; the threshold only selects one, so both loads fly at once.
// expects: 1.7x, 11.6 bytes an element in two trips of 650 ns for 2048 threads an SM, 2.4 TB/s, or 12 bytes in one, which is 4.3 TB/s
// proves: counter smsp__thread_inst_executed_pred_on_per_inst_executed.ratio > 1.1 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void compress(const float* __restrict__ x, const float* __restrict__ gain, float* __restrict__ y, int n, float threshold) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    // All lanes: 32 bytes of each sector, asked for with the value.
    float above = threshold + (value - threshold) * gain[i];
    y[i] = value > threshold ? above : value;
}

LAUNCH(const float* x, const float* gain, float* y, int n, float threshold, cudaStream_t stream) {
    compress<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, gain, y, n, threshold);
    return cudaGetLastError();
}
