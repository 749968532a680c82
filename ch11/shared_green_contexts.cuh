// Green contexts: the SMs of the GPU in two parts, each with a stream whose kernels run on that part alone.
#pragma once
#include <cuda.h>
#include <cudaTypedefs.h>

#include "common/cuda/launch.cuh"

// The driver's function of that name. Nothing here links against the driver, so the runtime finds it.
template <typename Function>
Function driver(const char* name, unsigned version) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
    return reinterpret_cast<Function>(found);
}
#define DRIVER(name, version) driver<PFN_##name##_v##version>(#name, version)

struct Part {
    CUgreenCtx context;
    cudaStream_t stream;

    // A context on the SMs of `resource`, and a stream in it.
    CUresult create(CUdevResource resource, CUdevice device) {
        CUdevResourceDesc description;
        if (CUresult error = DRIVER(cuDevResourceGenerateDesc, 12040)(&description, &resource, 1)) return error;
        if (CUresult error = DRIVER(cuGreenCtxCreate, 12040)(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM)) return error;
        return DRIVER(cuGreenCtxStreamCreate, 12050)(&stream, context, CU_STREAM_NON_BLOCKING, 0);
    }

    void destroy() {
        cudaStreamDestroy(stream);
        DRIVER(cuGreenCtxDestroy, 12040)(context);
    }
};

// Splits the current device's SMs: at least `sms` for `small`, the others for `rest`. cudaErrorNotSupported where the driver cannot.
inline cudaError_t split_sms(unsigned sms, Part& small, Part& rest) {
    int device;
    cudaGetDevice(&device);
    auto resource_of = DRIVER(cuDeviceGetDevResource, 12040);
    if (!resource_of) return cudaErrorNotSupported;
    CUdevResource all, first, others;
    unsigned groups = 1;
    CUresult error = resource_of(device, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (!error) error = DRIVER(cuDevSmResourceSplitByCount, 12040)(&first, &groups, &all, &others, 0, sms);
    if (!error) error = small.create(first, device);
    if (!error) error = rest.create(others, device);
    return error ? cudaErrorNotSupported : cudaSuccess;
}
