// Optimized: a CuTe layout swizzles a tile of 16-byte vectors.
// predicts: baseline 0.268 ms = 4 * tokens * width / 2.0e12 on h100  (requests of 64 bytes reach two thirds of the rate: assumed)
// predicts: optimized 0.192 ms = 4 * tokens * width / 2.8e12 on h100  (vectors, as in a copy: assumed rate)
// proves: ld_128bit
// proves: st_128bit
// proves: sts_128bit
// has: counter l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum < 2097152
// nvcc: --expt-relaxed-constexpr
#include <cuda_bf16.h>

#include <cute/layout.hpp>
#include <cute/swizzle.hpp>
#include <cute/swizzle_layout.hpp>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int TILE = 64, THREADS = 256;
constexpr int VECTOR = 8;               // values in 16 bytes
constexpr int VECTORS = TILE / VECTOR;  // per row of a tile

// Row t of the tile has 64 values, 128 bytes: all banks once. Swizzle<3, 3, 6> keeps the low 3 bits of an offset, which are a vector's. It
// changes the 3 above, which say which vector of the row, by the 3 bits that lie 6 above those: t / 8. So a vector stays whole and
// aligned, and values of one column in rows 0, 8, ... 56 lie in different banks.
//
// The counter: at the timed shape warps make tokens * width / 32 = 4194304 requests to load a value of a column per lane. Without the
// swizzle the 8 rows of a request meet in one bank: 7 conflicts each, 29360128. With it there are none; half of one a request is allowed.
using Tile = decltype(cute::composition(
    cute::Swizzle<3, 3, 6>{}, cute::Layout<cute::Shape<cute::Int<TILE>, cute::Int<TILE>>, cute::Stride<cute::Int<TILE>, cute::_1>>{}));

__global__ void __launch_bounds__(THREADS)
    turn(const __nv_bfloat16* __restrict__ values, __nv_bfloat16* __restrict__ turned, int tokens, int width) {
    __shared__ alignas(16) __nv_bfloat16 tile[TILE * TILE];
    const Tile at{};
    const int first_token = blockIdx.x * TILE, first_channel = blockIdx.y * TILE;
#pragma unroll
    for (int i = threadIdx.x; i < TILE * VECTORS; i += THREADS) {
        const int t = i / VECTORS, c = i % VECTORS * VECTOR;
        const int token = first_token + t, channel = first_channel + c;
        if (token < tokens && channel < width) {
            const uint4 vector = *reinterpret_cast<const uint4*>(values + size_t(token) * width + channel);
            *reinterpret_cast<uint4*>(tile + at(t, c)) = vector;
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < TILE * VECTORS; i += THREADS) {
        const int c = i / VECTORS, t = i % VECTORS * VECTOR;
        const int token = first_token + t, channel = first_channel + c;
        if (token < tokens && channel < width) {
            alignas(16) __nv_bfloat16 column[VECTOR];
#pragma unroll
            for (int j = 0; j < VECTOR; j++) column[j] = tile[at(t + j, c)];
            *reinterpret_cast<uint4*>(turned + size_t(channel) * tokens + token) = *reinterpret_cast<const uint4*>(column);
        }
    }
}

LAUNCH(const __nv_bfloat16* values, __nv_bfloat16* turned, int tokens, int width, cudaStream_t stream) {
    if (tokens % VECTOR || width % VECTOR) return cudaErrorInvalidValue;
    if (!aligned(16, values, turned)) return cudaErrorMisalignedAddress;
    turn<<<dim3(ceil_div(tokens, TILE), ceil_div(width, TILE)), THREADS, 0, stream>>>(values, turned, tokens, width);
    return cudaGetLastError();
}
