// What the kernels of the head's product share: a warp's product of one row of the weights with x, and how rows are shared out and copied.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"

constexpr int LANES = 32, WIDE = 8;  // a lane takes 8 elements, 16 bytes, at once

// This lane's part of the product of `row` and `x`, which are whole 16 bytes and in any memory.
__device__ inline float part_of_product(const __nv_bfloat16* row, const __nv_bfloat16* x, int hidden) {
    float sum = 0;
#pragma unroll 5
    for (int c = threadIdx.x % LANES * WIDE; c < hidden; c += LANES * WIDE) {
        const uint4 w = *reinterpret_cast<const uint4*>(row + c), v = *reinterpret_cast<const uint4*>(x + c);
        const auto ws = reinterpret_cast<const __nv_bfloat162*>(&w), vs = reinterpret_cast<const __nv_bfloat162*>(&v);
#pragma unroll
        for (int p = 0; p < WIDE / 2; p++) {
            const float2 a = __bfloat1622float2(ws[p]), b = __bfloat1622float2(vs[p]);
            sum += a.x * b.x + a.y * b.y;
        }
    }
    return sum;
}

// Writes the sum of a warp's parts.
__device__ inline void write_sum(float part, float* logit) {
    for (int step = LANES / 2; step > 0; step /= 2) part += __shfl_xor_sync(~0u, part, step);
    if (threadIdx.x % LANES == 0) *logit = part;
}

constexpr int ROWS = 16, STAGES = 2;  // 16 rows a stage: 40 KB at 1280 columns

// The rows of one block, the same number within one, in steps of at most ROWS.
struct Share {
    int begin, end;
    __device__ explicit Share(int64_t rows) : begin(rows * blockIdx.x / gridDim.x), end(rows * (blockIdx.x + 1) / gridDim.x) {}
    __device__ int steps() const { return (end - begin + ROWS - 1) / ROWS; }
    __device__ int first(int step) const { return begin + step * ROWS; }
    __device__ int count(int step) const { return min(ROWS, end - first(step)); }
};

// PTX ISA 9.7.9.25.4.1, cp.async.bulk: one thread announces the step's rows on the barrier and asks the TMA for them. They are contiguous.
__device__ inline void ask_for_rows(__nv_bfloat16* stage, const __nv_bfloat16* weights, Share share, int step, int hidden, uint64_t* full) {
    const uint32_t bytes = share.count(step) * hidden * sizeof(__nv_bfloat16);
    const __nv_bfloat16* from = weights + size_t(share.first(step)) * hidden;
    barrier_expect(full, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(stage)),
                 "l"(from), "r"(bytes), "r"(shared_address(full))
                 : "memory");
}

inline size_t stage_bytes(int hidden) { return size_t(ROWS) * hidden * sizeof(__nv_bfloat16); }

// Lets `kernel` have as much shared memory as a block may.
template <typename Kernel>
cudaError_t allow_stages(Kernel kernel) {
    int device, most;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) return code;
    cudaFuncAttributes used;
    if (cudaError_t code = cudaFuncGetAttributes(&used, kernel)) return code;
    if (cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared))
        return code;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - int(used.sharedSizeBytes));
}

// Two blocks per SM, whose stages are 160 KB at 1280 columns.
inline cudaError_t blocks_of(int hidden, int* blocks) {
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    *blocks = 2 * sms;
    return hidden % WIDE ? cudaErrorInvalidValue : cudaSuccess;  // rows of whole 16 bytes
}
