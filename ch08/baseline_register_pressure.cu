// Baseline: 16 x 16 sums per thread, more than 255 registers: spills.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 16;  // per dimension: 256 per block
constexpr int REACH = 16;
constexpr int TILE = THREADS * REACH;  // results per block and dimension
constexpr int DEPTH = 8;               // rows of x and g in shared memory per step

__device__ void load(float (*tile)[TILE], const float* __restrict__ from, int first, int depth, int column, int columns) {
#pragma unroll
    for (int pass = 0; pass < DEPTH * TILE; pass += THREADS * THREADS) {
        int e = pass + threadIdx.y * THREADS + threadIdx.x;
        int row = first + e / TILE, col = column + e % TILE;
        tile[e / TILE][e % TILE] = row < depth && col < columns ? from[row * columns + col] : 0;
    }
}

// The i-th row or column of a thread. They come in groups of 4, so that 16 threads read 256 adjacent bytes of shared memory.
__device__ int position(int i, int thread) { return i / 4 * 4 * THREADS + 4 * thread + i % 4; }

__global__ void multiply(const float* __restrict__ x, const float* __restrict__ g, float* __restrict__ w, int depth, int rows, int cols) {
    __shared__ alignas(16) float xs[DEPTH][TILE], gs[DEPTH][TILE];
    int r0 = blockIdx.y * TILE, c0 = blockIdx.x * TILE;
    float sum[REACH][REACH] = {};
    for (int first = 0; first < depth; first += DEPTH) {
        __syncthreads();
        load(xs, x, first, depth, r0, rows);
        load(gs, g, first, depth, c0, cols);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            // 8 loads of 16 bytes for 256 FMAs.
#pragma unroll
            for (int i = 0; i < REACH; i++) {
#pragma unroll
                for (int j = 0; j < REACH; j++)
                    sum[i][j] = fmaf(xs[k][position(i, threadIdx.y)], gs[k][position(j, threadIdx.x)], sum[i][j]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < REACH; i++) {
#pragma unroll
        for (int j = 0; j < REACH; j++) {
            int r = r0 + position(i, threadIdx.y), c = c0 + position(j, threadIdx.x);
            if (r < rows && c < cols) w[r * cols + c] = sum[i][j];
        }
    }
}

LAUNCH(const float* x, const float* g, float* w, int depth, int rows, int cols, cudaStream_t stream) {
    if (size_t(rows) * cols >= 1u << 31 || size_t(depth) * rows >= 1u << 31 || size_t(depth) * cols >= 1u << 31)
        return cudaErrorInvalidValue;  // indices are int
    dim3 grid(ceil_div(cols, TILE), ceil_div(rows, TILE));
    multiply<<<grid, dim3(THREADS, THREADS), 0, stream>>>(x, g, w, depth, rows, cols);
    return cudaGetLastError();
}
