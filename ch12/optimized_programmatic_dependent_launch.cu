// Optimized: each kernel loads its weights while the one before runs.
// needs: tma
// predicts: baseline 0.250 ms = layers * (4 * dim * dim / dram_read + 0.8e-6 + 2.2e-6)  (weights; DRAM latency; rest of a kernel, assumed)
// predicts: optimized 0.185 ms = layers * (0.4 * (4 * dim * dim / dram_read + 0.8e-6) + 2.2e-6)  (60 % of the prologue hidden)
// proves: pdl_wait
// proves: pdl_launch_dependents
// scratch: float a[dim]
// scratch: float b[dim]
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int LANES = 32, ROWS = 8;  // rows per block, one per warp
constexpr int RUN = 8;               // float4 per lane, so a row has at most 1024 weights

// One layer: y = max(0, weight x).
__global__ void layer(const float* weight, const float* x, float* y, int dim) {
    cudaTriggerProgrammaticLaunchCompletion();  // the next layer may start once every block of this layer has started
    const int row = blockIdx.x * ROWS + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool is_row = row < dim;
    float4 w[RUN];
    // The prologue: loads a row of weights, which no kernel writes. With __restrict__ the compiler would move these loads below the wait.
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        const int i = lane + k * LANES;
        w[k] = is_row && i < dim / 4 ? reinterpret_cast<const float4*>(weight + size_t(row) * dim)[i] : float4{0, 0, 0, 0};
    }
    cudaGridDependencySynchronize();  // x is read below, so the previous layer must have completed
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
    cudaLaunchAttribute overlap;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = ceil_div(dim, ROWS);
    launch.blockDim = ROWS * LANES;
    launch.stream = stream;
    launch.attrs = &overlap;
    launch.numAttrs = 1;
    const float* from = x;
    for (int l = 0; l < layers; l++) {
        float* to = l == layers - 1 ? y : l % 2 ? b : a;
        const float* matrix = weight + size_t(l) * dim * dim;
        if (cudaError_t code = cudaLaunchKernelEx(&launch, layer, matrix, from, to, dim)) return code;
        from = to;
    }
    return cudaGetLastError();
}
