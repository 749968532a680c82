// Baseline: one stage: all load, one thread multiplies, all wait.
// has: tcgen05_mma_f16_tf32
// has: tcgen05_commit
// has: tcgen05_ld
#include "common/cuda/launch.cuh"
#include "common/cuda/tcgen05.cuh"
#include "common/cuda/tma.cuh"
#include "shared_tile.cuh"

constexpr int TILE_N = 256;   // half of tensor memory's 512 columns, so two blocks fit an SM
constexpr int THREADS = 256;  // each loads 12 chunks of 16 bytes per K-step, and stores half a row of c
constexpr uint32_t INSTRUCTION = tcgen05_instruction(TILE_M, TILE_N);

struct alignas(SWIZZLE_PERIOD) Shared {
    unsigned char a[TILE_M * SWIZZLE_ROW], b[TILE_N * SWIZZLE_ROW];
    uint64_t multiplied;
    uint32_t tensor_memory;
};

__global__ void __launch_bounds__(THREADS, 2)
    multiply(const Element* __restrict__ a, const Element* __restrict__ b, Element* __restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared*>(bytes);
    const Tiles<TILE_N> tiles(m, n);
    const int first_row = tiles.row(blockIdx.x), first_column = tiles.column(blockIdx.x);
    if (threadIdx.x == 0) barrier_init(&shared.multiplied, 1);
    if (threadIdx.x / 32 == 1) tensor_memory_take(&shared.tensor_memory, TILE_N);
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    const uint32_t sums = shared.tensor_memory;
    const uint64_t a_from = tcgen05_operand(shared_address(shared.a)), b_from = tcgen05_operand(shared_address(shared.b));

    for (int first = 0; first < k; first += TILE_K) {
        Share<TILE_M, THREADS> a_share;
        Share<TILE_N, THREADS> b_share;
        a_share.load(a, first_row, first, m, k);
        b_share.load(b, first_column, first, n, k);
        a_share.store(shared.a);
        b_share.store(shared.b);
        show_to_async_proxy();
        __syncthreads();
        if (threadIdx.x == 0) {
            tcgen05_fence_after();
#pragma unroll
            for (int l = 0; l < TILE_K / 16; l++) {
                const uint64_t columns = l * 32 >> 4;
                tcgen05_multiply(sums, a_from + columns, b_from + columns, INSTRUCTION, first > 0 || l > 0);
            }
            tcgen05_commit(&shared.multiplied);
        }
        __syncwarp();
        barrier_wait(&shared.multiplied, first / TILE_K % 2);  // the products are complete, so the tiles may be overwritten
    }

    // Tensor memory has 128 lanes, one per row, and both warpgroups can read all. The second takes the second half of the columns.
    tcgen05_fence_after();
    const int lane = threadIdx.x % 128, row = first_row + lane;
#pragma unroll
    for (int part = 0; part < TILE_N / 128; part++) {
        const int half = threadIdx.x / 128 * TILE_N / 2 + part * 64;
        uint32_t sum[64];
        tcgen05_load(sum, tensor_address(sums, lane / 32 * 32, half));
#pragma unroll
        for (int j = 0; j < 64; j += 8) {
            const int column = first_column + half + j;
            __nv_bfloat162 rounded[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                rounded[i] = __floats2bfloat162_rn(__uint_as_float(sum[j + 2 * i]), __uint_as_float(sum[j + 2 * i + 1]));
            }
            if (row < m && column < n) *reinterpret_cast<uint4*>(c + size_t(row) * n + column) = reinterpret_cast<const uint4&>(rounded);
        }
    }
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (threadIdx.x / 32 == 1) tensor_memory_give_back(sums, TILE_N);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    if (cudaError_t error = Product{a, b, c, m, n, k}.check()) return error;
    multiply<<<Tiles<TILE_N>(m, n).count(), THREADS, sizeof(Shared), stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}
