// Optimized: 16 bytes an access everywhere; 4 x 4 blocks turn in registers, and an XOR spreads them over the banks without padding.
// expects: 3x, the bytes of the padded tile; runs of 256 bytes and a quarter of the memory instructions only help it get there
// proves: ld_128bit
// proves: st_128bit
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
// has: sts_128bit
// has: lds_128bit
#include "common/cuda/launch.cuh"

constexpr int TILE = 64;                // floats: a row of the tile is 256 bytes, 8 sectors, in x and in y
constexpr int GROUPS = TILE / 4;        // groups of 4 floats, what a thread moves at a time; 16 lanes share a row
constexpr int THREADS = 256;            // 4 loads of 16 bytes in flight for each
constexpr int STEP = THREADS / GROUPS;  // 16 rows, or groups of rows, in a pass of the block

// Where the tile keeps rows 4 * group to 4 * group + 3 of column `column`. 16 bytes are 4 of the 32 banks, so 8 lanes at a time go
// without conflict if their slots differ mod 8. Lanes write one group of columns 4 apart: column / 4 tells them apart, and no padding
// could, since 4 * width * lane mod 8 is 0 or 4. They read 8 groups of one column: these differ, also after an XOR with one number.
__device__ int slot(int column, int group) { return column * GROUPS + (group ^ (column / 4)); }

// Four floats at `from`, of which `valid` are inside the matrix. WHOLE: all are, and they are aligned.
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
__device__ void turn(float4* tile, const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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
    // The same for the whole block, and without predicates the compiler issues all 4 loads of a thread before it waits for one.
    const bool inside = (blockIdx.x + 1) * TILE <= rows && (blockIdx.y + 1) * TILE <= cols;
    const bool aligned = rows % 4 == 0 && cols % 4 == 0;
    if (inside && aligned)
        turn<true>(tile, x, y, rows, cols);
    else
        turn<false>(tile, x, y, rows, cols);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    // blockIdx.x, which counts first, goes down x: blocks that run together write whole rows of y and read pieces of the rows of x. One of
    // the two must go in pieces, and writes suffer more: a tuning run on an H200 (2026-11-22, 8192 x 8192) took 131 us so, 135 the other
    // way round, and 127 for a copy of as many bytes. Pieces on one side alone, nothing turned: 4.3 us more if written, 1.5 if read.
    // And loads in flight need room in the L1, which shares its 256 KB with the tiles: at 16384 x 16384 the 6 blocks of 256 threads that an
    // SM holds took 517 us, 12 of 128, for which the driver leaves the L1 28 KB, 532; and so did any number that it was made to leave so.
    dim3 grid(ceil_div(rows, TILE), ceil_div(cols, TILE));
    transpose<<<grid, THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
