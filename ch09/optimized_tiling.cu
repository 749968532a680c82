// Optimized: 8 x 8 results per thread: 4 loads for 64 FMAs.
// predicts: baseline 16.4 ms = m * n * k / 32 * 2 / (sm_count * sm_clock)  (2 cycles of shared memory per FMA of a warp)
// predicts: optimized 2.74 ms = m * n * k / 128 / (sm_count * sm_clock) / 0.75  (3/4 of the FMA rate, as cuBLAS)
// proves: more ffma
// proves: ld_128bit
// proves: registers > 2 x baseline
// proves: counter l1tex__data_pipe_lsu_wavefronts_mem_shared.sum < 0.25 x baseline
// has: lds_128bit
// has: spills == 0
//
// A thread holds two sets of operands in registers: while it multiplies one, the loads of the other are in flight. With 128 registers per
// thread a scheduler has only 4 warps, too few to hide the latency of shared memory, so each warp hides its own behind 64 FMAs.
// The order of the FMAs suits the register file, which delivers three operands per cycle only if they are not all in one bank. One row of
// sums is visited from the left and the next from the right, so that consecutive FMAs share an operand.
// Tuning run at m = n = k = 4096 (H200): 0.90 of cuBLAS's speed with both, 0.78 without them.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int TILE = 128;     // rows and columns of c per block
constexpr int DEPTH = 8;      // a K-step: tiles of a and b take 4 KB each, one float4 of each per thread
constexpr int THREADS = 256;  // 8 warps, 4 down and 2 across
constexpr int PAD = 4;  // a thread stores 4 floats down a column of a_tile; with rows of 132 floats a warp's 32 floats lie in 32 banks

// Four floats at `from`, of which `valid` are inside the matrix. ALIGNED: `from` is a multiple of 16 bytes, and `valid` is 0 or 4.
template <bool ALIGNED>
__device__ float4 load(const float* from, int valid) {
    if (ALIGNED) return valid > 0 ? *reinterpret_cast<const float4*>(from) : float4{};
    return {valid > 0 ? from[0] : 0, valid > 1 ? from[1] : 0, valid > 2 ? from[2] : 0, valid > 3 ? from[3] : 0};
}

template <bool ALIGNED>
__device__ void store(float* to, int valid, const float* values) {
    if (ALIGNED) {
        if (valid > 0) *reinterpret_cast<float4*>(to) = {values[0], values[1], values[2], values[3]};
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (j < valid) to[j] = values[j];
    }
}

// Operands of a thread's 64 FMAs: its 8 rows are two groups of 4, 16 apart; its columns two groups of 4, 32 apart; 16 bytes per load.
struct Part {
    float a[8], b[8];

    __device__ void read(const float* a_from, const float* b_from) {
        reinterpret_cast<float4*>(a)[0] = *reinterpret_cast<const float4*>(a_from);
        reinterpret_cast<float4*>(a)[1] = *reinterpret_cast<const float4*>(a_from + 16);
        reinterpret_cast<float4*>(b)[0] = *reinterpret_cast<const float4*>(b_from);
        reinterpret_cast<float4*>(b)[1] = *reinterpret_cast<const float4*>(b_from + 32);
    }
    __device__ void multiply(float (&sum)[8][8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int step = 0; step < 8; step++) {
                const int j = i % 2 ? 7 - step : step;  // alternating direction: every FMA shares an operand with the previous one
                sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
            }
        }
    }
};

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ alignas(16) float a_tile[2][DEPTH][TILE + PAD], b_tile[2][DEPTH][TILE];  // one pair is read while the other is written
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    const int a_row = threadIdx.x / 2, a_col = threadIdx.x % 2 * 4, b_row = threadIdx.x / 32, b_col = threadIdx.x % 32 * 4;
    const float* a_from = a + size_t(row0 + a_row) * k + a_col;
    const float* b_from = b + size_t(b_row) * n + col0 + b_col;
    const int a_valid = row0 + a_row < m ? k - a_col : 0, b_valid = n - col0 - b_col;

    // A warp's lanes are 4 down and 8 across. Lanes that differ in bit 0 read the same float4 of b_tile, in bit 1 the same of a_tile: a
    // warp's request is for 128 different bytes of b_tile or 64 of a_tile, none of them in one bank.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32 + (lane / 16 * 2 + lane % 2) * 4, col = warp % 2 * 64 + lane % 16 / 2 * 4;

    float4 a_next = load<ALIGNED>(a_from, a_valid), b_next = load<ALIGNED>(b_from, b_row < k ? b_valid : 0);
    Part part[2];
    float sum[8][8] = {};
    for (int first = 0, now = 0; first < k; first += DEPTH, now ^= 1) {
        a_tile[now][a_col + 0][a_row] = a_next.x;
        a_tile[now][a_col + 1][a_row] = a_next.y;
        a_tile[now][a_col + 2][a_row] = a_next.z;
        a_tile[now][a_col + 3][a_row] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[now][b_row][b_col]) = b_next;
        __syncthreads();  // one barrier per tile: past it, all threads have read the pair of tiles that is written next
        // The next tiles are loaded while these are multiplied. To save registers, the compiler issues the loads after 256 FMAs.
        const int next = first + DEPTH;
        a_from += DEPTH;
        a_next = load<ALIGNED>(a_from, a_valid - next);
        b_next = load<ALIGNED>(b_from + size_t(next) * n, next + b_row < k ? b_valid : 0);
        part[0].read(a_tile[now][0] + row, b_tile[now][0] + col);
#pragma unroll
        for (int l = 0; l < DEPTH; l++) {
            if (l + 1 < DEPTH) part[(l + 1) % 2].read(a_tile[now][l + 1] + row, b_tile[now][l + 1] + col);
            part[l % 2].multiply(sum);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int r = row0 + row + i % 4 + i / 4 * 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int at = col0 + col + 32 * half;
            store<ALIGNED>(c + size_t(r) * n + at, r < m ? n - at : 0, sum[i] + 4 * half);
        }
    }
}

LAUNCH(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    auto kernel = n % 4 == 0 && k % 4 == 0 && aligned(16, a, b, c) ? multiply<true> : multiply<false>;
    kernel<<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}
