// Optimized: one kernel keeps the row in shared memory: 2 passes of DRAM.
// predicts: baseline 0.1831 ms = 4 * rows * cols / dram_read + 8 * rows * cols / dram_copy  (bytes per element: a read, then a copy)
// predicts: optimized 0.1248 ms = 8 * rows * cols / dram_copy  (a copy)
// proves: launches == 1
// proves: counter dram__bytes.sum < 0.75 x baseline
// The bound: 2 passes of 3 are 0.67.
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

__global__ void normalize(const float* __restrict__ x, float* __restrict__ y, int cols, float eps) {
    extern __shared__ float
        kept[];  // 4096 columns take 16 KB, so an SM still holds 8 blocks. A thread reads only what it wrote, so no barrier is needed.
    size_t row = size_t(blockIdx.x) * cols;
    float sum = 0;
    // Per element: 4 bytes read.
    for (int c = threadIdx.x; c < cols; c += THREADS) {
        kept[c] = x[row + c];
        sum += kept[c] * kept[c];
    }
    float factor = 1 / fmaxf(sqrtf(sum_over_block(sum)), eps);
    // Per element: 4 bytes written.
    for (int c = threadIdx.x; c < cols; c += THREADS) y[row + c] = kept[c] * factor;
}

LAUNCH(const float* x, float* y, int rows, int cols, float eps, cudaStream_t stream) {
    normalize<<<rows, THREADS, cols * sizeof(float), stream>>>(x, y, cols, eps);  // up to 48 KB; more asks for an opt-in
    return cudaGetLastError();
}
