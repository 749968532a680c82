// Baseline: blocks of 256 threads, two per SM: 16 warps of 64.
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int SIZE = 24576;  // entries of the table: 96 KB of an SM's 228 KB, so two blocks per SM
constexpr int THREADS = 256;
constexpr int BLOCKS = 2 * 132;  // as many as fit an H200; the loop covers any n with any number of blocks

__global__ void decode(const float* __restrict__ table, const int16_t* __restrict__ codes, float* __restrict__ y, int n) {
    extern __shared__ float entries[];
    for (int k = threadIdx.x; k < SIZE; k += THREADS) entries[k] = table[k];
    __syncthreads();
    // A warp reads 64 bytes of codes, waits for them, then looks up their entries in the table.
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) y[i] = entries[codes[i]];
}

PREPARE(void** state) {  // more than 48 KB of shared memory per block need an opt-in
    return cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, SIZE * sizeof(float));
}

LAUNCH(const float* table, const int16_t* codes, float* y, int n, cudaStream_t stream) {
    if (size_t(n) + BLOCKS * THREADS >= 1u << 31) return cudaErrorInvalidValue;  // a thread's next index is an int
    int blocks = ceil_div(n, THREADS) < BLOCKS ? ceil_div(n, THREADS) : BLOCKS;
    decode<<<blocks, THREADS, SIZE * sizeof(float), stream>>>(table, codes, y, n);
    return cudaGetLastError();
}
