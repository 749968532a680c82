// Stands for the CUDA runtime and the driver under a side built without either: launches nothing, prints what the TMA and the GPU are told.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

constexpr int MULTIPROCESSORS = 132;

static CUresult encode(CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* matrix, const cuuint64_t* sizes,
                       const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    std::printf("map %d %zx %d", int(type), size_t(matrix), int(swizzle));
    for (cuuint32_t i = 0; i < rank; i++) {
        std::printf(" %zu:%zu:%u:%u", size_t(sizes[i]), i == 0 ? size_t(0) : size_t(strides[i - 1]), box[i], steps[i]);
    }
    std::printf("\n");
    return CUDA_SUCCESS;
}

extern "C" {
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return ""; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    *value = MULTIPROCESSORS;
    return attribute == cudaDevAttrMultiProcessorCount ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
    *function = reinterpret_cast<void*>(encode);
    *found = std::strcmp(name, "cuTensorMapEncodeTiled") == 0 ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
    dim3 cluster;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const auto& value = config->attrs[i].val.clusterDim;
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) cluster = {value.x, value.y, value.z};
    }
    std::printf("launch %zu %zx", config->dynamicSmemBytes, size_t(config->stream));
    for (const dim3& each : {config->gridDim, config->blockDim, cluster}) std::printf(" %u:%u:%u", each.x, each.y, each.z);
    std::printf("\n");
    return cudaSuccess;
}
// What nvcc has a library do when it is loaded, and what <<<>>> is made of.
void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction() {}
void __cudaRegisterVar() {}
int __cudaGetKernel() { return cudaErrorUnknown; }
int __cudaLaunchKernel() { return cudaErrorUnknown; }
int __cudaPopCallConfiguration() { return cudaErrorUnknown; }
}

// LIBRARY M N K: one launch of a product whose matrices are said to lie at 1, 2 and 3 GiB.
int main(int, char** arguments) {
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    using Launch = cudaError_t(size_t, size_t, size_t, int, int, int, size_t);
    auto* launch = reinterpret_cast<Launch*>(dlsym(library, "launch"));
    const int m = std::atoi(arguments[2]), n = std::atoi(arguments[3]), k = std::atoi(arguments[4]);
    return launch(1ull << 30, 2ull << 30, 3ull << 30, m, n, k, 0x57) == cudaSuccess ? 0 : 2;
}
