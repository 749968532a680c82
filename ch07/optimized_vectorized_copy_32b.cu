// Optimized: one 32-byte access per thread, not 16 bytes: half as many.
// predicts: baseline 0.0671 ms = 8 * n / 8e12 on b200  (32 KB in flight per SM; 17.6 KB are enough)
// predicts: optimized 0.0671 ms = 8 * n / 8e12 on b200  (64 KB in flight are no faster; published DRAM rate of a B200)
// needs: ld_256bit
// instead: ch07:vectorized_copy
// proves: ld_256bit
// proves: st_256bit
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int WIDTH = 8;  // floats per vector

// alignas(32) lets the compiler emit one 32-byte load. Before sm_100 it emits two 16-byte loads.
struct alignas(32) Eight {
    float values[WIDTH];
};

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x, vectors = n / WIDTH, rest = n % WIDTH;
    // One request of a warp: all 32 bytes of each of 32 sectors.
    if (i < vectors) reinterpret_cast<Eight*>(y)[i] = reinterpret_cast<const Eight*>(x)[i];
    if (i < rest) y[vectors * WIDTH + i] = x[vectors * WIDTH + i];
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    if (!aligned(sizeof(Eight), x, y)) return cudaErrorMisalignedAddress;
    copy<<<ceil_div(n, THREADS * WIDTH), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
