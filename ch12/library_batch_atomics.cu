// Library: cub::DeviceSelect, one pass with decoupled look-back; its list keeps the order of x.
// scratch: int list[n]
// scratch: uint8_t storage[1048576 + n / 64]
#include <cub/device/device_select.cuh>
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, LANES = 32, BELOW = 8192;
constexpr int TALLY_BLOCKS = 528;

struct IsKept {
    __host__ __device__ bool operator()(int v) const { return v < BELOW; }
};

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

LAUNCH(const int* x, int* count, int64_t* sums, int* list, uint8_t* storage, int n, cudaStream_t stream) {
    if (size_t(n) + TALLY_BLOCKS * THREADS >= 1u << 31) return cudaErrorInvalidValue;  // a thread's next index is an int
    if (cudaError_t code = cudaMemsetAsync(sums, 0, 2 * sizeof(int64_t), stream)) return code;
    size_t bytes = 1048576 + n / 64;
    if (cudaError_t code = cub::DeviceSelect::If(storage, bytes, x, list, count, n, IsKept{}, stream)) return code;
    tally<<<TALLY_BLOCKS, THREADS, 0, stream>>>(list, count, sums);
    return cudaGetLastError();
}
