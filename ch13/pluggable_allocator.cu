// The pool of shared_page_pool.cuh on a GPU's memory, as functions that torch.cuda.memory.CUDAPluggableAllocator calls.
// Pages are mapped by the driver's virtual memory management. Not for CUDA graphs: a capture must not wait for the GPU.
// Nor for tensors that several streams use: PyTorch does not tell it of `Tensor.record_stream`, so a block may be reused too early.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <sys/types.h>

#include <map>
#include <stdexcept>
#include <string>

#include "shared_page_pool.cuh"

// The driver's function of that name, as CUDA 10.2 has it. Nothing here links against the driver, so the runtime finds it.
template <typename Function>
Function driver(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion(name, &found, 10020, cudaEnableDefault, &result) != cudaSuccess || found == nullptr) {
        throw std::runtime_error(std::string("found no ") + name + " in the driver");
    }
    return reinterpret_cast<Function>(found);
}

template <typename Code>
void check(Code code, const char* call) {
    if (code != 0) throw std::runtime_error(std::string(call) + " returned " + std::to_string(code));
}
#define CHECK(call) check(call, #call)

struct Driver {
    PFN_cuMemGetAllocationGranularity_v10020 granularity = driver<decltype(granularity)>("cuMemGetAllocationGranularity");
    PFN_cuMemCreate_v10020 create = driver<decltype(create)>("cuMemCreate");
    PFN_cuMemAddressReserve_v10020 reserve = driver<decltype(reserve)>("cuMemAddressReserve");
    PFN_cuMemAddressFree_v10020 release = driver<decltype(release)>("cuMemAddressFree");
    PFN_cuMemMap_v10020 map = driver<decltype(map)>("cuMemMap");
    PFN_cuMemUnmap_v10020 unmap = driver<decltype(unmap)>("cuMemUnmap");
    PFN_cuMemSetAccess_v10020 set_access = driver<decltype(set_access)>("cuMemSetAccess");
};

class GpuMemory {
  public:
    using Page = CUmemGenericAllocationHandle;

    explicit GpuMemory(int device) {
        CHECK(cudaFree(nullptr));  // makes the context, if this is the first call
        kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        kind.location.id = device;
        CHECK(call.granularity(&bytes, &kind, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    }

    size_t page_bytes() const { return bytes; }

    bool make(Page* page) {
        const CUresult code = call.create(page, bytes, &kind, 0);
        if (code == CUDA_ERROR_OUT_OF_MEMORY) return false;
        check(code, "cuMemCreate");
        return true;
    }

    char* reserve(size_t pages) {
        CUdeviceptr begin;
        CHECK(call.reserve(&begin, pages * bytes, 0, 0, 0));
        return reinterpret_cast<char*>(begin);
    }

    void map(char* begin, const std::vector<Page>& pages) {
        CUdeviceptr at = reinterpret_cast<CUdeviceptr>(begin);
        for (const Page page : pages) {
            CHECK(call.map(at, bytes, 0, page, 0));
            at += bytes;
        }
        const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CHECK(call.set_access(reinterpret_cast<CUdeviceptr>(begin), pages.size() * bytes, &access, 1));
    }

    void unmap(char* begin, size_t pages) {
        const CUdeviceptr first = reinterpret_cast<CUdeviceptr>(begin);
        for (size_t page = 0; page < pages; page++) CHECK(call.unmap(first + page * bytes, bytes));
        CHECK(call.release(first, pages * bytes));
    }

    void wait() { CHECK(cudaDeviceSynchronize()); }

  private:
    Driver call;
    CUmemAllocationProp kind = {};
    size_t bytes = 0;
};

static PagePool<GpuMemory>& pool_of(int device) {
    static std::mutex lock;
    static auto& pools = *new std::map<int, PagePool<GpuMemory>>;  // never destroyed: tensors may outlive what is static
    std::lock_guard<std::mutex> hold(lock);
    const auto found = pools.find(device);
    return (found != pools.end() ? found : pools.try_emplace(device, GpuMemory(device)).first)->second;
}

extern "C" void* page_pool_malloc(ssize_t bytes, int device, cudaStream_t stream) { return pool_of(device).take(bytes, stream); }

extern "C" void page_pool_free(void* address, ssize_t, int device, cudaStream_t) {
    if (address) pool_of(device).give(address);
}
