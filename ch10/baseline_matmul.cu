// Baseline: each thread computes one element of c from global memory.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_cuda_cores.cuh"

constexpr int TILE = 16;  // rows and columns of c per block

// For 8 products per lane, a warp reads 16 rows of b and 2 rows of a. Each row is a cache line of its own: 18 lines, used for 8 loads.
__global__ void __launch_bounds__(TILE* TILE)
    multiply(const Element* __restrict__ a, const Element* __restrict__ b, Element* __restrict__ c, int m, int n, int k) {
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || column >= n) return;
    const Element *a_row = a + size_t(row) * k, *b_row = b + size_t(column) * k;
    float sum = 0;
    for (int l = 0; l < k; l += EIGHT) sum = add_products(sum, load_eight(a_row + l), load_eight(b_row + l));
    c[size_t(row) * n + column] = __float2bfloat16_rn(sum);
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    if (k % EIGHT) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (!aligned(16, a, b)) return cudaErrorMisalignedAddress;
    multiply<<<dim3(ceil_div(n, TILE), ceil_div(m, TILE)), dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}
