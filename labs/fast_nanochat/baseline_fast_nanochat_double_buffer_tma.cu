// Baseline: one warp per row, which loads it into registers.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_head_product.cuh"

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS)
    head_product(const __nv_bfloat16* x, const __nv_bfloat16* weights, float* logits, int hidden, int vocabulary) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    if (row < vocabulary) write_sum(part_of_product(weights + size_t(row) * hidden, x, hidden), logits + row);
}

LAUNCH(const __nv_bfloat16* x, const __nv_bfloat16* weights, float* logits, int hidden, int vocabulary, cudaStream_t stream) {
    if (hidden % WIDE) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (!aligned(16, x, weights)) return cudaErrorMisalignedAddress;
    head_product<<<ceil_div(vocabulary, THREADS / LANES), THREADS, 0, stream>>>(x, weights, logits, hidden, vocabulary);
    return cudaGetLastError();
}
