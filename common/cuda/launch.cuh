// Included first by every .cu side: declares the entry points that the harness calls, and exports their signatures as text.
//
// Every entry point returns a cudaError_t, and anything but cudaSuccess fails the side.
// Pointers are to device memory. Allocations of CUDA and PyTorch start at multiples of 256 bytes; an input that is a view may not.
// A tensor that the workload declares with `where="pinned"` is page-locked host memory: kernels can access it, and copies are asynchronous.
#pragma once
#include <cuda_runtime.h>

// Defines the timed function, as in LAUNCH(const float* x, float* y, int n) { ... }.
// The macro also exports its own argument text. The harness binds arguments from that text, so it cannot disagree with the compiled code.
#define LAUNCH(...)                                          \
    extern "C" const char launch_signature[] = #__VA_ARGS__; \
    extern "C" cudaError_t launch(__VA_ARGS__)

// Optional: defines a function that runs untimed, once before the first LAUNCH on the same tensors.
// PREPARE's last argument is `void** state`, which it sets. LAUNCH may then take `void* state`.
#define PREPARE(...)                                          \
    extern "C" const char prepare_signature[] = #__VA_ARGS__; \
    extern "C" cudaError_t prepare(__VA_ARGS__)
// Optional, only with PREPARE: FINISH(void* state) releases what PREPARE allocated.
#define FINISH(...) extern "C" cudaError_t finish(__VA_ARGS__)

// The description of an error code, for the harness's message. Not inline: the harness looks the symbol up, and no code here calls it.
extern "C" const char* error_text(cudaError_t code) { return cudaGetErrorString(code); }

// n / d rounded up, for n >= 0 and d > 0. The sum n + d - 1 must fit in T.
template <typename T>
__host__ __device__ constexpr T ceil_div(T n, T d) {
    return (n + d - 1) / d;
}
