// The little of the runtime that launches ask for, for the machine of machine.hpp.
#pragma once
#include <cstring>
#include <utility>

#include "machine.hpp"

using cudaError_t = int;
using cudaStream_t = void*;
constexpr int cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMisalignedAddress = 716;
constexpr int cudaErrorCooperativeLaunchTooLarge = 720;
constexpr int cudaDevAttrMultiProcessorCount = 0, cudaFuncAttributeMaxDynamicSharedMemorySize = 0;
constexpr int cudaFuncAttributePreferredSharedMemoryCarveout = 1, cudaSharedmemCarveoutMaxShared = 100;

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

inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) {
    std::memset(to, byte, bytes);
    return 0;
}

enum { cudaLaunchAttributeClusterDimension };
struct cudaLaunchAttribute {
    int id;
    struct {
        struct {
            int x, y, z;
        } clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    Index gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    int numAttrs;
};
template <typename Kernel, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, Kernel kernel, Arguments... arguments) {
    if (config->dynamicSmemBytes > on_cpu::SHARED) return 1;
    on_cpu::launch(config->gridDim.x, config->blockDim.x, [=] { kernel(arguments...); }, config->attrs->val.clusterDim.x);
    return cudaGetLastError();
}
// A cluster lies in one GPC; here these have so many multiprocessors, and the last one what is left.
extern "C" {
__attribute__((used)) inline int on_cpu_gpc = 18;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* count, Kernel, const cudaLaunchConfig_t* config) {
    const int gpc = on_cpu_gpc, blocks = config->attrs->val.clusterDim.x;
    *count = on_cpu::multiprocessors / gpc * (gpc / blocks) + on_cpu::multiprocessors % gpc / blocks;
    return cudaSuccess;
}

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float4 __ldcg(const float4* from) { return *from; }
// Clusters run one after the other: what one leaves for another in memory is there.
inline void __threadfence() {}
inline int atomicExch(int* at, int value) { return std::exchange(*at, value); }
// Who finds another value is taken to ask again.
inline int atomicCAS(int* at, int compared, int value) {
    if (*at == compared) return std::exchange(*at, value);
    on_cpu::wait([=] { return *at == compared; });
    return ~compared;
}
template <typename T>
T max(T a, T b) {
    return a < b ? b : a;
}
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
