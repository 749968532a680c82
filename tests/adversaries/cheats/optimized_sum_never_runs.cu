// Cheat: claims 128-bit loads; the kernel that has them is in the library, and no launch ever reaches it.
// has: ld_128bit
#include "common/cuda/launch.cuh"

#include "shared_sum.cuh"

__global__ void sum_rows_by_four(const float4* x, float* y, int cols) {
    float sum = 0;
    for (int c = threadIdx.x; c < cols / 4; c += THREADS) {
        float4 four = x[size_t(blockIdx.x) * (cols / 4) + c];
        sum += four.x + four.y + four.z + four.w;
    }
    atomicAdd(&y[blockIdx.x], sum);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (rows < 0) sum_rows_by_four<<<-rows, THREADS, 0, stream>>>(reinterpret_cast<const float4*>(x), y, cols);
    sum_rows<<<rows, THREADS, 0, stream>>>(x, y, cols);
    return cudaGetLastError();
}
