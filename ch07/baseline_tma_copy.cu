// Baseline: each thread copies one float4 of a row: 32 KB in flight per SM, as in vectorized_copy.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int WIDE = 256;  // threads per block, all in one row: 4 KB of it
constexpr int VECTOR = 4;  // floats per thread

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int cols) {
    const int c = VECTOR * (blockIdx.x * WIDE + threadIdx.x);
    const size_t at = size_t(blockIdx.y) * cols + c;
    // One request of a warp: 128 floats of a row, 16 sectors. Rows are multiples of 16 bytes, so no vector is cut.
    if (c < cols) *reinterpret_cast<float4*>(y + at) = *reinterpret_cast<const float4*>(x + at);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (!aligned(sizeof(float4), x, y) || cols % VECTOR != 0) return cudaErrorMisalignedAddress;
    copy<<<dim3(ceil_div(cols, WIDE * VECTOR), rows), WIDE, 0, stream>>>(x, y, cols);
    return cudaGetLastError();
}
