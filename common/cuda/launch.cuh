// Included first by every .cu side: the entry points that the harness calls, and their signatures as text.
// A pointer to an input or output that the workload states `where="pinned"` is the host's: kernels may use it, and copies of it are async.
#pragma once
#include <cuda_runtime.h>

// The exported string is the argument text that was compiled, so what is bound is what was compiled.
#define LAUNCH(...)                                          \
    extern "C" const char launch_signature[] = #__VA_ARGS__; \
    extern "C" cudaError_t launch(__VA_ARGS__)

// Optional: what is set up once, untimed. PREPARE's last argument is `void** state`; LAUNCH may then take `void* state`.
#define PREPARE(...)                                          \
    extern "C" const char prepare_signature[] = #__VA_ARGS__; \
    extern "C" cudaError_t prepare(__VA_ARGS__)
// Optional, with PREPARE: FINISH(void* state) undoes it.
#define FINISH(...) extern "C" cudaError_t finish(__VA_ARGS__)

// Names an error code for the harness's message. Not inline: nothing here calls it, and it must be in the library.
extern "C" const char* error_text(cudaError_t code) { return cudaGetErrorString(code); }

template <typename T>
__host__ __device__ constexpr T ceil_div(T n, T d) {
    return (n + d - 1) / d;
}
