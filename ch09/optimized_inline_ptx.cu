// Optimized: one instruction for the square root, by a line of PTX.
// predicts: baseline 0.297 ms = n * m / 32 * 18.5 / (4 * sm_count * sm_clock)  (instructions per distance, 4 schedulers per SM)
// predicts: optimized 0.151 ms = n * m / 32 * 9.4 / (4 * sm_count * sm_clock)  (the root's unit is busy for 8 of 9.4 cycles)
// proves: /\bMUFU\.SQRT\b/
// proves: fewer /\bBSSY\b/
// has: spills == 0
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;  // points per block, and landmarks in shared memory per step

// PTX ISA, sqrt.approx: a relative error of 2^-23 at most, where sqrtf has 2^-24. With .ftz, arguments below 2^-126 count as 0; without it,
// three more instructions would scale them. The result depends on the argument alone, so the asm is not volatile.
__device__ float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

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
            part += other.w * root(dx * dx + dy * dy + dz * dz);
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
