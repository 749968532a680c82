// Baseline: every kept value takes its place in the list by an atomic; the compiler merges those of a warp into one.
// scratch: int list[n]
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, LANES = 32, BELOW = 8192;
constexpr int RUN = 16;  // values per thread, all of whose loads are in flight at once
constexpr int TALLY_BLOCKS = 528;

__global__ void compact(const int* __restrict__ x, int* list, int* count, int n) {
    int kept[RUN];
    const int first = blockIdx.x * THREADS * RUN + threadIdx.x;
#pragma unroll
    for (int k = 0; k < RUN; k++) kept[k] = first + k * THREADS < n ? x[first + k * THREADS] : BELOW;
#pragma unroll
    for (int k = 0; k < RUN; k++)
        if (kept[k] < BELOW) list[atomicAdd(count, 1)] = kept[k];
}

// Length and sums of the list, which do not depend on its order.
__global__ void tally(const int* __restrict__ list, const int* __restrict__ count, int64_t* sums) {
    unsigned long long sum = 0, squares = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < *count; i += gridDim.x * THREADS) {
        const unsigned long long v = list[i];
        sum += v, squares += v * v;
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        sum += __shfl_down_sync(~0u, sum, step);
        squares += __shfl_down_sync(~0u, squares, step);
    }
    if (threadIdx.x % LANES) return;
    auto totals = reinterpret_cast<unsigned long long*>(sums);
    atomicAdd(totals, sum);
    atomicAdd(totals + 1, squares);
}

LAUNCH(const int* x, int* count, int64_t* sums, int* list, int n, cudaStream_t stream) {
    if (size_t(n) + TALLY_BLOCKS * THREADS >= 1u << 31) return cudaErrorInvalidValue;  // a thread's next index is an int
    if (cudaError_t code = cudaMemsetAsync(count, 0, sizeof(int), stream)) return code;
    if (cudaError_t code = cudaMemsetAsync(sums, 0, 2 * sizeof(int64_t), stream)) return code;
    compact<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, list, count, n);
    tally<<<TALLY_BLOCKS, THREADS, 0, stream>>>(list, count, sums);
    return cudaGetLastError();
}
