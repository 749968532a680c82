// The Tensor Memory Accelerator: one thread asks for a whole tile of a matrix, in or out, and goes on; edges are clipped for it.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cudaTypedefs.h>

#include <cstdint>

#include "common/cuda/mbarrier.cuh"

// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor: coordinates are those of the tile's first element, the fastest dimension first. Outside the
// matrix zeros are loaded, which count as bytes like all others, and nothing is stored. A tile is aligned to 128 bytes, a swizzled one to
// its pattern.
__device__ inline void load_tile(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     shared_address(tile)),
                 "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor, .multicast::cluster: the tile is read once and lands in every block of the cluster whose bit
// is set, where `tile` lies in this one, and there its bytes complete on the barrier that lies where `barrier` does. So every block
// announces its own.
__device__ inline void load_tile_multicast(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier, uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], "
        "%5;" ::"r"(shared_address(tile)),
        "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(blocks)
        : "memory");
}

// PTX ISA 9.7.9.25.6.1, cp.async.bulk.commit_group: the store is a group of the thread that asked for it, and that thread can wait for it.
__device__ inline void store_tile(const CUtensorMap* map, int column, int row, const void* tile) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row),
                 "r"(shared_address(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// PTX ISA 9.7.9.25.6.2, cp.async.bulk.wait_group.read: until all stores that this thread asked for have read their tiles.
__device__ inline void wait_until_stores_have_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// PTX ISA 9.7.13.4, fence.proxy.async: what this thread wrote to shared memory is seen by the TMA and by tensor cores that are told of it
// later.
__device__ inline void show_to_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

template <typename T>
constexpr CUtensorMapDataType TENSOR_MAP_TYPE = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
constexpr CUtensorMapDataType TENSOR_MAP_TYPE<__nv_bfloat16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// A row-major matrix as the TMA sees it. CUDA driver API, cuTensorMapEncodeTiled: its address and its rows are whole 16 bytes; a tile has
// at most 256 x 256 elements, rows of whole 16 bytes, and where it is swizzled no longer ones than the swizzle.
template <typename T>
struct Tiled {
    const T* matrix;
    int rows, cols;
    int tile_rows, tile_cols;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// Makes the map; cudaErrorInvalidValue where the driver refuses. The runtime finds the driver's function: nothing here is linked to
// libcuda.
template <typename T>
inline cudaError_t encode(CUtensorMap* map, const Tiled<T>& tiled) {
    static_assert(sizeof(T) == (TENSOR_MAP_TYPE<T> == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ? 2 : 4), "float or bf16");
    static PFN_cuTensorMapEncodeTiled_v12000 function = nullptr;
    if (!function) {
        cudaDriverEntryPointQueryResult found;
        void* symbol = nullptr;
        cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault, &found);
        if (error != cudaSuccess) return error;
        if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
        function = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(symbol);
    }
    const cuuint64_t sizes[2] = {cuuint64_t(tiled.cols), cuuint64_t(tiled.rows)};          // the fastest dimension first
    const cuuint64_t strides[1] = {cuuint64_t(tiled.cols) * sizeof(T)};                    // bytes, of all dimensions but the fastest
    const cuuint32_t box[2] = {cuuint32_t(tiled.tile_cols), cuuint32_t(tiled.tile_rows)};  // elements of a tile
    const cuuint32_t steps[2] = {1, 1};                                                    // from one of them to the next
    CUresult result =
        function(map, TENSOR_MAP_TYPE<T>, 2, const_cast<T*>(tiled.matrix), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                 tiled.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
