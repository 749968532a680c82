// Optimized: 16-byte accesses: a quarter of the loads and stores.
// predicts: baseline 1.50 ms = (4 + 32) * rows * cols / (1.5 * dram_copy)  (through the L2, assumed 1.5 times as fast as DRAM)
// predicts: optimized 0.499 ms = (4 + 4) * rows * cols / dram_copy  (the bytes of the padded tile)
// predicts: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum = 0.125 x baseline
// proves: ld_128bit
// proves: st_128bit
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
// has: sts_128bit
// has: lds_128bit
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int TILE = 64;                // floats per row of the tile: 256 bytes, 8 sectors, in x and in y
constexpr int GROUPS = TILE / 4;        // groups of 4 floats per row; a lane moves one group per access, and 16 lanes share a row
constexpr int THREADS = 256;            // threads per block, each with 4 loads of 16 bytes in flight
constexpr int STEP = THREADS / GROUPS;  // 16 rows, or groups of rows, per pass of the block

// Slot of the 16 bytes that hold rows 4 * group to 4 * group + 3 of column `column`.
// 16 bytes cover 4 of the 32 banks, so a wavefront serves 8 lanes. They do not conflict if their slots differ modulo 8.
// Stores: 8 lanes hold one group of columns that are 4 apart, so the XOR with column / 4 separates them.
// Padding cannot: with rows of `width` slots, 4 * width * lane modulo 8 is 0 or 4.
// Loads: 8 lanes hold 8 groups of one column. An XOR with one number keeps them distinct.
__device__ int slot(int column, int group) { return column * GROUPS + (group ^ (column / 4)); }

// Four floats at `from`, of which `valid` are inside the matrix. WHOLE: all four are inside, at a multiple of 16 bytes.
template <bool WHOLE>
__device__ float4 load(const float* from, int valid) {
    if (WHOLE) return *reinterpret_cast<const float4*>(from);
    return {valid > 0 ? from[0] : 0, valid > 1 ? from[1] : 0, valid > 2 ? from[2] : 0, valid > 3 ? from[3] : 0};
}

template <bool WHOLE>
__device__ void store(float* to, int valid, float4 value) {
    if (WHOLE) {
        *reinterpret_cast<float4*>(to) = value;
        return;
    }
    if (valid > 0) to[0] = value.x;
    if (valid > 1) to[1] = value.y;
    if (valid > 2) to[2] = value.z;
    if (valid > 3) to[3] = value.w;
}

template <bool WHOLE>
__device__ void transpose_tile(float4* tile, const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int lane = threadIdx.x % GROUPS, first = threadIdx.x / GROUPS;
    const int r0 = blockIdx.x * TILE, c0 = blockIdx.y * TILE;
    float4 in[GROUPS / STEP][4];
#pragma unroll
    for (int pass = 0; pass < GROUPS / STEP; pass++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = r0 + 4 * (first + pass * STEP) + i, c = c0 + 4 * lane;
            in[pass][i] = load<WHOLE>(x + size_t(r) * cols + c, r < rows ? cols - c : 0);
        }
    }
#pragma unroll
    for (int pass = 0; pass < GROUPS / STEP; pass++) {
        const auto& [a, b, c, d] = in[pass];
        const int group = first + pass * STEP;
        tile[slot(4 * lane + 0, group)] = {a.x, b.x, c.x, d.x};
        tile[slot(4 * lane + 1, group)] = {a.y, b.y, c.y, d.y};
        tile[slot(4 * lane + 2, group)] = {a.z, b.z, c.z, d.z};
        tile[slot(4 * lane + 3, group)] = {a.w, b.w, c.w, d.w};
    }
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < TILE / STEP; pass++) {
        const int column = first + pass * STEP, c = c0 + column, r = r0 + 4 * lane;
        store<WHOLE>(y + size_t(c) * rows + r, c < cols ? rows - r : 0, tile[slot(column, lane)]);
    }
}

__global__ void __launch_bounds__(THREADS) transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float4 tile[TILE * GROUPS];  // 16 KB
    // Both conditions hold for a block as a whole. Without predicates the compiler issues all 4 loads before it waits for one.
    const bool inside = (blockIdx.x + 1) * TILE <= rows && (blockIdx.y + 1) * TILE <= cols;
    const bool aligned = rows % 4 == 0 && cols % 4 == 0;
    if (inside && aligned)
        transpose_tile<true>(tile, x, y, rows, cols);
    else
        transpose_tile<false>(tile, x, y, rows, cols);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    // Order, as in the step down_columns: blockIdx.x varies fastest and goes down x.
    // Blocks that run together write whole rows of y and read 256-byte pieces of x.
    // One of the two must go in pieces, and writes suffer more. Tuning run on an H200 (8192 x 8192):
    //     this order 131 us, the other order 135 us, a copy of as many bytes 127 us
    //     a copy with pieces on one side: 4.3 us more if written in pieces, 1.5 us more if read in pieces
    // Size: loads in flight need room in the L1, which shares 256 KB with the tiles. At 16384 x 16384, per SM:
    //     6 blocks of 256 threads 517 us; 12 blocks of 128 threads, which leave the L1 28 KB, 532 us
    dim3 grid(ceil_div(rows, TILE), ceil_div(cols, TILE));
    transpose<<<grid, THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
