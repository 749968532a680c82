// Optimized: both answers computed, then selected: two loads in flight.
// predicts: baseline 0.323 ms = 2 * 650e-9 * n / (2048 * sm_count)  (two trips to DRAM of 650 ns, assumed, for 2048 threads per SM)
// predicts: optimized 0.187 ms = 12 * n / dram_copy
// proves: counter smsp__thread_inst_executed_pred_on_per_inst_executed.ratio > 1.1 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void compress(const float* __restrict__ x, const float* __restrict__ gain, float* __restrict__ y, int n, float threshold) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    // All lanes load, together with the value: 32 bytes of each sector are used.
    float above = threshold + (value - threshold) * gain[i];
    y[i] = value > threshold ? above : value;
}

LAUNCH(const float* x, const float* gain, float* y, int n, float threshold, cudaStream_t stream) {
    compress<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, gain, y, n, threshold);
    return cudaGetLastError();
}
