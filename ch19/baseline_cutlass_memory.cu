// Baseline: a tile of 32 x 32 in shared memory, its rows padded by one value, so that reading a column meets few bank conflicts.
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"

constexpr int TILE = 32, ROWS = 8;

__global__ void turn(const __nv_bfloat16* __restrict__ values, __nv_bfloat16* __restrict__ turned, int tokens, int width) {
    __shared__ __nv_bfloat16 tile[TILE][TILE + 1];
    const int first_token = blockIdx.x * TILE, first_channel = blockIdx.y * TILE;
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int token = first_token + i, channel = first_channel + threadIdx.x;
        if (token < tokens && channel < width) tile[i][threadIdx.x] = values[size_t(token) * width + channel];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int channel = first_channel + i, token = first_token + threadIdx.x;
        // A request of a warp: 64 bytes, half of what one could have.
        if (token < tokens && channel < width) turned[size_t(channel) * tokens + token] = tile[threadIdx.x][i];
    }
}

LAUNCH(const __nv_bfloat16* values, __nv_bfloat16* turned, int tokens, int width, cudaStream_t stream) {
    turn<<<dim3(ceil_div(tokens, TILE), ceil_div(width, TILE)), dim3(TILE, ROWS), 0, stream>>>(values, turned, tokens, width);
    return cudaGetLastError();
}
