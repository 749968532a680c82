// Baseline: a kernel per layer loads weights when the one before ended.
// scratch: float a[dim]
// scratch: float b[dim]
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int LANES = 32, ROWS = 8;  // rows per block, one per warp
constexpr int RUN = 8;               // float4 per lane, so a row has at most 1024 weights

// One layer: y = max(0, weight x).
__global__ void layer(const float* weight, const float* x, float* y, int dim) {
    const int row = blockIdx.x * ROWS + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool is_row = row < dim;
    float4 w[RUN];
    // Loads a row of weights, which no kernel writes.
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        const int i = lane + k * LANES;
        w[k] = is_row && i < dim / 4 ? reinterpret_cast<const float4*>(weight + size_t(row) * dim)[i] : float4{0, 0, 0, 0};
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        const int i = lane + k * LANES;
        if (i >= dim / 4) break;
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += w[k].x * v.x + w[k].y * v.y + w[k].z * v.z + w[k].w * v.w;
    }
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (is_row && lane == 0) y[row] = fmaxf(sum, 0);
}

LAUNCH(const float* x, const float* weight, float* y, float* a, float* b, int layers, int dim, cudaStream_t stream) {
    if (dim % 4 || dim > 4 * RUN * LANES) return cudaErrorInvalidValue;  // a warp holds a row
    if (!aligned(16, x, weight, a, b)) return cudaErrorMisalignedAddress;
    const float* from = x;
    for (int l = 0; l < layers; l++) {
        float* to = l == layers - 1 ? y : l % 2 ? b : a;
        const float* matrix = weight + size_t(l) * dim * dim;
        layer<<<ceil_div(dim, ROWS), ROWS * LANES, 0, stream>>>(matrix, from, to, dim);
        from = to;
    }
    return cudaGetLastError();
}
