// Optimized: a thread copies eight floats, 32 bytes an access and a whole sector: what only Blackwell moves with one instruction.
// expects: 1.3x, as with 16 bytes: those fill memory already, and a vector of twice the width is half the instructions, not twice the speed
// needs: ld_256bit
// instead: ch07:vectorized_copy
// proves: ld_256bit
// proves: st_256bit
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int WIDTH = 8;  // floats of a vector

// The compiler moves it at once for its alignment's sake. On architectures before 10.0 it makes two accesses of 16 bytes, 32 bytes apart.
struct alignas(32) Eight {
    float values[WIDTH];
};

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x, vectors = n / WIDTH, rest = n % WIDTH;
    // A warp's request: all 32 bytes of each of 32 sectors.
    if (i < vectors) reinterpret_cast<Eight*>(y)[i] = reinterpret_cast<const Eight*>(x)[i];
    if (i < rest) y[vectors * WIDTH + i] = x[vectors * WIDTH + i];
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * WIDTH), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
