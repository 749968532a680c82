// Baseline: blocks of 256 threads, two per SM: 16 warps of 64.
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int SIZE = 24576;  // entries of the table: 96 KB, of the 228 KB of an SM
constexpr int THREADS = 256;
constexpr int BLOCKS = 2 * 132;  // as many as the SMs of an H200 hold; the loop covers any n with any number of blocks

__global__ void decode(const float* __restrict__ table, const int16_t* __restrict__ codes, float* __restrict__ y, int n) {
    extern __shared__ float entries[];
    for (int k = threadIdx.x; k < SIZE; k += THREADS) entries[k] = table[k];
    __syncthreads();
    // A warp's request: 64 bytes of codes. What they stand for is looked up once they are here.
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) y[i] = entries[codes[i]];
}

PREPARE(void** state) {  // more than 48 KB for a block have to be asked for
    return cudaFuncSetAttribute(decode, cudaFuncAttributeMaxDynamicSharedMemorySize, SIZE * sizeof(float));
}

LAUNCH(const float* table, const int16_t* codes, float* y, int n, cudaStream_t stream) {
    int blocks = ceil_div(n, THREADS) < BLOCKS ? ceil_div(n, THREADS) : BLOCKS;
    decode<<<blocks, THREADS, SIZE * sizeof(float), stream>>>(table, codes, y, n);
    return cudaGetLastError();
}
