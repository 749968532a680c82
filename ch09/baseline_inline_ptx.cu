// Baseline: sqrtf: ten instructions, one a branch, for exact rounding.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;  // points per block, and landmarks in shared memory per step

__global__ void __launch_bounds__(THREADS) distances(const float4* __restrict__ points, float* __restrict__ y, int n, int m) {
    __shared__ float4 landmarks[THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const float4 own = points[min(i, n - 1)];
    float sum = 0;
    for (int first = 0; first < m; first += THREADS) {
        __syncthreads();
        landmarks[threadIdx.x] = first + threadIdx.x < m ? points[first + threadIdx.x] : float4{};  // weight 0: adds nothing
        __syncthreads();
        float part = 0;  // sums of 256 first, then their sum: fewer roundings one after the other
#pragma unroll 8
        for (int j = 0; j < THREADS; j++) {
            const float4 other = landmarks[j];
            const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
            part += other.w * sqrtf(dx * dx + dy * dy + dz * dz);
        }
        sum += part;
    }
    if (i < n) y[i] = sum;
}

LAUNCH(const float* points, float* y, int n, int m, cudaStream_t stream) {
    if (!aligned(sizeof(float4), points)) return cudaErrorMisalignedAddress;
    distances<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(reinterpret_cast<const float4*>(points), y, n, m);
    return cudaGetLastError();
}
