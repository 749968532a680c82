// The little of the runtime that launches ask for, for the machine of machine.hpp.
#pragma once
#include "machine.hpp"

using cudaError_t = int;
using cudaStream_t = void*;
constexpr int cudaSuccess = 0, cudaDevAttrMultiProcessorCount = 0, cudaFuncAttributeMaxDynamicSharedMemorySize = 0;

inline const char* cudaGetErrorString(cudaError_t) { return on_cpu::error.c_str(); }
inline cudaError_t cudaGetLastError() { return on_cpu::error.empty() ? 0 : 1; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0; }
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) {
    *value = on_cpu::multiprocessors;
    return 0;
}
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, int, size_t bytes) {
    return bytes <= on_cpu::SHARED ? 0 : 1;
}

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
template <typename T>
T min(T a, T b) {
    return b < a ? b : a;
}
inline float __uint_as_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// For ctypes: how the next launch is to be run, and what was wrong with it.
extern "C" __attribute__((used)) inline void on_cpu_set(uint32_t seed, int laziness, int multiprocessors, const char* skipped) {
    on_cpu::seed = seed;
    on_cpu::chance.seed(seed);
    on_cpu::laziness = laziness;
    on_cpu::multiprocessors = multiprocessors;
    on_cpu::skipped = skipped;
    on_cpu::error.clear();
}
