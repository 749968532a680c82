// The part of CUDA's host runtime that sides use, on one emulated device: everything is done at once, in order, when it is asked for.
#pragma once
#include <string.h>

#include "numbers.hpp"

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorMisalignedAddress = 716,
    cudaErrorNotSupported = 801,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorGraphExecUpdateFailure = 910,
};
typedef cudaError cudaError_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUmemPoolHandle_st* cudaMemPool_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100, cudaSharedmemCarveoutMaxL1 = 0 };
enum { cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum cudaLimit { cudaLimitPersistingL2CacheSize = 6 };
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxPersistingL2CacheSize = 108,
    cudaDevAttrMaxAccessPolicyWindowSize = 109,
};
struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, l2CacheSize;
    int persistingL2CacheMaxSize, accessPolicyMaxWindowSize;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
};
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow {
    void* base_ptr;
    size_t num_bytes;
    float hitRatio;
    cudaAccessProperty hitProp, missProp;
};
enum cudaStreamAttrID { cudaStreamAttributeAccessPolicyWindow = 1, cudaLaunchAttributeAccessPolicyWindow = 1 };
union cudaStreamAttrValue {
    cudaAccessPolicyWindow accessPolicyWindow;
};

namespace cuda_on_cpu {

// Few multiprocessors, and not a power of two, so that a small shape still needs every branch of a grid-stride loop.
constexpr int MULTIPROCESSORS = 3;
constexpr int L2_BYTES = 50 << 20;
constexpr int BEST_BLOCK = 768;

inline cudaError_t now() { return cudaError_t(last_error(false)); }
inline cudaError_t copy(void* to, const void* from, size_t bytes) {
    enqueue([=] {
        if (host_access(to, bytes, true) && host_access(from, bytes, false)) memmove(to, from, bytes);
    });
    return now();
}
inline cudaError_t fill(void* to, int value, size_t bytes) {
    enqueue([=] {
        if (host_access(to, bytes, true)) memset(to, value, bytes);
    });
    return now();
}
inline cudaError_t wait() {
    forbid_capture();
    return now();
}
template <typename T>
cudaError_t make(T** made, size_t bytes, const char* name, bool of_host = false) {
    forbid_capture();
    *made = static_cast<T*>(allocate(bytes, name, of_host));
    return now();
}
inline cudaError_t drop(void* made) { return release(made) ? cudaSuccess : cudaErrorInvalidValue; }
template <typename Handle>
cudaError_t handle(Handle* made) {
    static char any;
    *made = reinterpret_cast<Handle>(&any);
    return cudaSuccess;
}

}  // namespace cuda_on_cpu

inline cudaError_t cudaGetLastError() { return cudaError_t(cuda_on_cpu::last_error(true)); }
inline cudaError_t cudaPeekAtLastError() { return cudaError_t(cuda_on_cpu::last_error(false)); }
inline const char* cudaGetErrorString(cudaError_t code) { return cuda_on_cpu::message_of(code); }
inline const char* cudaGetErrorName(cudaError_t code) { return cuda_on_cpu::message_of(code); }

template <typename T>
cudaError_t cudaMalloc(T** made, size_t bytes) {
    return cuda_on_cpu::make(made, bytes, "memory from cudaMalloc");
}
template <typename T>
cudaError_t cudaMallocAsync(T** made, size_t bytes, cudaStream_t) {
    return cuda_on_cpu::make(made, bytes, "memory from cudaMallocAsync");
}
template <typename T>
cudaError_t cudaMallocManaged(T** made, size_t bytes, unsigned = 1) {
    return cuda_on_cpu::make(made, bytes, "memory from cudaMallocManaged", true);
}
template <typename T>
cudaError_t cudaMallocHost(T** made, size_t bytes, unsigned = 0) {
    return cuda_on_cpu::make(made, bytes, "memory from cudaMallocHost", true);
}
inline cudaError_t cudaFree(void* made) { return cuda_on_cpu::drop(made); }
inline cudaError_t cudaFreeAsync(void* made, cudaStream_t) { return cuda_on_cpu::drop(made); }
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return cuda_on_cpu::handle(pool); }
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
inline cudaError_t cudaFreeHost(void* made) { return cuda_on_cpu::drop(made); }

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    cuda_on_cpu::wait();
    return cuda_on_cpu::copy(to, from, bytes);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t = 0) {
    return cuda_on_cpu::copy(to, from, bytes);
}
// The devices are two, but memory and threads are the same.
inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t = 0) {
    return cuda_on_cpu::copy(to, from, bytes);
}
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 2, cudaSuccess; }
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                     cudaMemcpyKind, cudaStream_t = 0) {
    for (size_t row = 0; row < height; row++)
        if (cudaError_t code =
                cuda_on_cpu::copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width))
            return code;
    return cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    cuda_on_cpu::wait();
    return cuda_on_cpu::fill(to, value, bytes);
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = 0) { return cuda_on_cpu::fill(to, value, bytes); }
template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + bytes > sizeof symbol) return cudaErrorInvalidValue;
    return cuda_on_cpu::copy(reinterpret_cast<char*>(&symbol) + offset, from, bytes);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t = 0) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, T& symbol) {
    *address = &symbol;
    return cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cuda_on_cpu::handle(stream); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cuda_on_cpu::handle(stream); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cuda_on_cpu::handle(stream); }
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) { return *lowest = 0, *highest = -5, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cuda_on_cpu::wait(); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return cuda_on_cpu::handle(event); }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cuda_on_cpu::handle(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cuda_on_cpu::wait(); }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) { return *milliseconds = 0, cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cuda_on_cpu::wait(); }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }

// A graph is the work that was captured, in its order; it keeps pointers, and finds there what lies there when it is launched.
typedef struct CUgraph_st {
    std::vector<cuda_on_cpu::Work> work;
} *cudaGraph_t, *cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
struct cudaGraphEdgeData;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    cuda_on_cpu::begin_capture();
    return cuda_on_cpu::now();
}
inline cudaGraph_t captured_into = nullptr;  // a body of a conditional node, say; else a graph of its own
inline cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                                 size_t, cudaStreamCaptureMode mode) {
    captured_into = graph;
    return cudaStreamBeginCapture(stream, mode);
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = captured_into ? std::exchange(captured_into, nullptr) : new CUgraph_st;
    for (cuda_on_cpu::Work& work : cuda_on_cpu::end_capture()) (*graph)->work.push_back(std::move(work));
    return cuda_on_cpu::now();
}
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
// All work is in order, so that no node depends on others by name.
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long*, cudaGraph_t* graph,
                                            const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count) {
    static const cudaGraphNode_t last = nullptr;
    *status = cudaStreamCaptureStatusActive;
    *graph = captured_into;
    *nodes = &last;
    *edges = nullptr;
    *count = 1;
    return cuda_on_cpu::now();
}
inline cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
    *graph = new CUgraph_st;
    return cuda_on_cpu::now();
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long = 0) {
    *made = new CUgraph_st(*graph);
    return cuda_on_cpu::now();
}
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess, cudaGraphExecUpdateError, cudaGraphExecUpdateErrorTopologyChanged };
struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
};
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t made, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
    const bool same = made->work.size() == graph->work.size();
    info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    if (!same) return cudaErrorGraphExecUpdateFailure;
    made->work = graph->work;
    return cuda_on_cpu::now();
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cuda_on_cpu::now(); }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    for (const cuda_on_cpu::Work& work : graph->work) cuda_on_cpu::enqueue(work);
    return cuda_on_cpu::now();
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
    *count = graph->work.size();
    return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }

// A conditional node: its bodies are graphs that are captured later, and a kernel sets the value that says which of them run.
typedef unsigned long long cudaGraphConditionalHandle;
enum { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
enum cudaGraphNodeType { cudaGraphNodeTypeKernel = 0, cudaGraphNodeTypeConditional = 13 };
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t* phGraph_out;
};
struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    cudaConditionalNodeParams conditional;
};
inline cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value = 0,
                                                    unsigned flags = 0) {
    unsigned* held = new unsigned(value);  // kept until the process ends: a handle has no call that destroys it
    *handle = reinterpret_cast<cudaGraphConditionalHandle>(held);
    if (flags & cudaGraphCondAssignDefault) graph->work.push_back([=] { *held = value; });
    return cuda_on_cpu::now();
}
inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    cuda_on_cpu::move_bytes(reinterpret_cast<unsigned*>(handle), &value, sizeof value);
}
inline cudaError_t cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t graph, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                    cudaGraphNodeParams* params) {
    cudaConditionalNodeParams& node = params->conditional;
    if (params->type != cudaGraphNodeTypeConditional || !node.size) return cudaErrorInvalidValue;
    node.phGraph_out = new cudaGraph_t[node.size];  // as the handle
    for (unsigned i = 0; i < node.size; i++) node.phGraph_out[i] = new CUgraph_st;
    graph->work.push_back([node, value = reinterpret_cast<unsigned*>(node.handle)] {
        const auto run = [&](unsigned body) {
            for (const cuda_on_cpu::Work& work : node.phGraph_out[body]->work) work();
        };
        if (node.type == cudaGraphCondTypeSwitch) {
            if (*value < node.size) run(*value);
        } else if (node.type == cudaGraphCondTypeIf) {
            if (*value || node.size > 1) run(*value ? 0 : 1);
        } else {
            while (*value && !cuda_on_cpu::last_error(false)) run(0);
        }
    });
    return cuda_on_cpu::now();
}

// A launch with attributes. Programmatic serialization lets a kernel begin before the one in front has ended; here it never does.
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
union cudaLaunchAttributeValue {
    int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute* attrs = nullptr;
    unsigned numAttrs = 0;
};
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
    *found = {"emulated",
              9,
              0,
              cuda_on_cpu::MULTIPROCESSORS,
              32,
              1024,
              2048,
              cuda_on_cpu::L2_BYTES,
              cuda_on_cpu::L2_BYTES / 2,
              cuda_on_cpu::L2_BYTES,
              48 << 10,
              227 << 10,
              228 << 10};
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            *value = 1024;
            break;
        case cudaDevAttrWarpSize:
            *value = 32;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = cuda_on_cpu::MULTIPROCESSORS;
            break;
        case cudaDevAttrL2CacheSize:
            *value = cuda_on_cpu::L2_BYTES;
            break;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            *value = 2048;
            break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *value = 228 << 10;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = 227 << 10;
            break;
        case cudaDevAttrMaxPersistingL2CacheSize:
            *value = cuda_on_cpu::L2_BYTES / 2;
            break;
        case cudaDevAttrMaxAccessPolicyWindowSize:
            *value = cuda_on_cpu::L2_BYTES;
            break;
    }
    return cudaSuccess;
}

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > 227 << 10) return cudaErrorInvalidValue;
    cuda_on_cpu::allow_dynamic_shared(size_t(value));
    return cudaSuccess;
}
struct cudaFuncAttributes {
    int numRegs;
};
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
    return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
    return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int threads, size_t) {
    *blocks = 2048 / threads;
    return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel*, size_t = 0, int limit = 0) {
    *block = limit && limit < cuda_on_cpu::BEST_BLOCK ? limit : cuda_on_cpu::BEST_BLOCK;
    *grid = cuda_on_cpu::MULTIPROCESSORS * (2048 / *block);
    return cudaSuccess;
}
