// Stages in shared memory for rows of the head's weights: who gets which rows, and how the TMA is asked for them.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "labs/fast_nanochat/shared_bulk_copy.cuh"
#include "shared_head_product.cuh"

constexpr int ROWS = 16, STAGES = 2;  // 16 rows a stage: 40 KB at 1280 columns

// The rows of one block, the same number within one, in steps of at most ROWS.
struct Share {
    int begin, end;
    __device__ explicit Share(int64_t rows) : begin(rows * blockIdx.x / gridDim.x), end(rows * (blockIdx.x + 1) / gridDim.x) {}
    __device__ int steps() const { return (end - begin + ROWS - 1) / ROWS; }
    __device__ int first(int step) const { return begin + step * ROWS; }
    __device__ int count(int step) const { return min(ROWS, end - first(step)); }
};

// One thread announces a step's rows on the barrier and asks for them. They are contiguous.
__device__ inline void ask_for_rows(__nv_bfloat16* stage, const __nv_bfloat16* weights, Share share, int step, int hidden, uint64_t* full) {
    const uint32_t bytes = share.count(step) * hidden * sizeof(__nv_bfloat16);
    barrier_expect(full, bytes);
    copy_bytes(stage, weights + size_t(share.first(step)) * hidden, bytes, full);
}

inline size_t stage_bytes(int hidden) { return size_t(ROWS) * hidden * sizeof(__nv_bfloat16); }

// Lets a block of `kernel` have 200 KB, and an SM as much shared memory as it has.
template <typename Kernel>
cudaError_t allow_stages(Kernel kernel) {
    if (cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared))
        return code;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
}

// Two blocks per SM, whose stages are 160 KB at 1280 columns.
inline cudaError_t blocks_of(int hidden, int* blocks) {
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    *blocks = 2 * sms;
    return hidden % WIDE ? cudaErrorInvalidValue : cudaSuccess;  // rows of whole 16 bytes
}
