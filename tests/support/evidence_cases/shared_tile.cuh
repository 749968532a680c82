// A tile of a matrix comes into shared memory by one TMA request and goes out by plain stores.
#pragma once
#include <cstdint>
#include <cuda.h>
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;

__device__ inline uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ inline void load_tile(float* tile, uint64_t* barrier, const CUtensorMap* map, int column, int row) {
    const uint32_t at = shared_address(barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(at), "r"(TILE * TILE * 4) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                         shared_address(tile)),
                     "l"(map), "r"(column), "r"(row), "r"(at)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra done; bra again; done: }" ::"r"(at)
                 : "memory");
}

__global__ void copy_tile(const __grid_constant__ CUtensorMap map, float* y, int rows, int cols) {
    __shared__ alignas(128) float tile[TILE * TILE];
    __shared__ uint64_t barrier;
    load_tile(tile, &barrier, &map, blockIdx.x * TILE, blockIdx.y * TILE);
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        int row = blockIdx.y * TILE + i / TILE, column = blockIdx.x * TILE + i % TILE;
        if (row < rows && column < cols) y[size_t(row) * cols + column] = tile[i];
    }
}

// A map of `x`, whose rows are a multiple of 16 bytes. Through the runtime, so that nothing is linked against the driver.
inline cudaError_t encode(CUtensorMap* map, const float* x, int rows, int cols) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
    const cuuint64_t size[] = {cuuint64_t(cols), cuuint64_t(rows)}, stride[] = {cuuint64_t(cols) * 4};
    const cuuint32_t box[] = {TILE, TILE}, step[] = {1, 1};
    CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

inline cudaError_t launch_copy_tile(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    CUtensorMap map;
    if (cudaError_t code = encode(&map, x, rows, cols)) return code;
    copy_tile<<<dim3(ceil_div(cols, TILE), ceil_div(rows, TILE)), 128, 0, stream>>>(map, y, rows, cols);
    return cudaGetLastError();
}
