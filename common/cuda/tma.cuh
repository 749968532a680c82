// The Tensor Memory Accelerator (TMA): one thread starts an asynchronous copy of a whole tile between global and shared memory.
//
// The device helpers need sm_90 or later. A map is a `const __grid_constant__ CUtensorMap` kernel argument, aligned to 64 bytes.
// A tile in shared memory is aligned to 128 bytes, or to the period of its swizzle: 1024 bytes for the 128-byte swizzle.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cudaTypedefs.h>

#include <cstdint>

#include "common/cuda/mbarrier.cuh"

// Starts loading the tile whose first element is (row, column), in elements. PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor.
// Elements outside the matrix are loaded as zeros. They count as bytes like all others.
// One thread calls it. The same phase of `barrier`, which lies in this block, needs a barrier_expect for the bytes of the whole tile.
// The tile may be read after barrier_wait. Its earlier contents must have been read by all threads.
__device__ inline void load_tile(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     shared_address(tile)),
                 "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

// Starts loading one tile into every block of the cluster whose bit is set in `blocks` (bit r is rank r), reading it once.
// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor, .multicast::cluster.
// In each block, the tile lands at the offset of `tile`, and its bytes count on the barrier at the offset of `barrier`.
// One thread of one block calls it. Every receiving block must announce the bytes on its own barrier with barrier_expect.
// Every receiving block must have released the buffer first (cluster_arrive).
__device__ inline void load_tile_multicast(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier, uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], "
        "%5;" ::"r"(shared_address(tile)),
        "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(blocks)
        : "memory");
}

// Starts storing a tile at (row, column), in elements; elements outside the matrix are not written.
// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor, and 9.7.9.25.6.1, cp.async.bulk.commit_group.
// One thread calls it. Each writer of the tile calls show_to_async_proxy first, and the writers then synchronize with this thread.
// The store is a bulk group of the calling thread, and only that thread can wait for it.
__device__ inline void store_tile(const CUtensorMap* map, int column, int row, const void* tile) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row),
                 "r"(shared_address(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until all stores that this thread started have read their tiles, which may then be overwritten.
// PTX ISA 9.7.9.25.6.2, cp.async.bulk.wait_group.read. It does not wait until global memory is written.
__device__ inline void wait_until_stores_have_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Makes this thread's earlier writes to shared memory visible to later TMA and tensor-core operations, which use the async proxy.
// PTX ISA 9.7.13.4, fence.proxy.async. Each writing thread calls it, before it synchronizes with the thread that starts the operation.
__device__ inline void show_to_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The driver's name of an element type: float, or bf16 by the specialization.
template <typename T>
constexpr CUtensorMapDataType TENSOR_MAP_TYPE = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
constexpr CUtensorMapDataType TENSOR_MAP_TYPE<__nv_bfloat16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// A row-major matrix in global memory, and the tiles that the TMA copies. Sizes are in elements.
// CUDA driver API, cuTensorMapEncodeTiled, requires:
//   the matrix  an address that is a multiple of 16 bytes, and rows of a multiple of 16 bytes;
//   a tile      at most 256 x 256 elements, and rows of a multiple of 16 bytes;
//   a swizzle   tile rows no longer than the swizzle: 128 bytes for CU_TENSOR_MAP_SWIZZLE_128B.
template <typename T>
struct Tiled {
    const T* matrix;
    int rows, cols;
    int tile_rows, tile_cols;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// Writes the tensor map of a matrix to host memory. CUDA driver API, cuTensorMapEncodeTiled.
// The runtime looks the driver's function up, so a side is not linked with libcuda.
// Returns cudaErrorNotSupported where the driver has no such function, and cudaErrorInvalidValue where the driver refuses the matrix.
// Elements outside the matrix are filled with zeros. The L2 promotion is 256 bytes.
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
    const cuuint64_t sizes[2] = {cuuint64_t(tiled.cols), cuuint64_t(tiled.rows)};          // elements, fastest dimension first
    const cuuint64_t strides[1] = {cuuint64_t(tiled.cols) * sizeof(T)};                    // bytes, without the fastest dimension
    const cuuint32_t box[2] = {cuuint32_t(tiled.tile_cols), cuuint32_t(tiled.tile_rows)};  // elements of a tile, fastest dimension first
    const cuuint32_t steps[2] = {1, 1};                                                    // elements between neighbours of a tile: dense
    CUresult result =
        function(map, TENSOR_MAP_TYPE<T>, 2, const_cast<T*>(tiled.matrix), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                 tiled.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
