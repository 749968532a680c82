// Optimized: bulk copies stream experts' rows; a warp multiplies each.
// predicts: baseline 133 us = 6 * top * hidden * inner / (0.6 * dram_read) + 15 * 2e-6 on h100  (0.6, 15 kernels of 2 us: assumed)
// predicts: optimized 68.1 us = 6 * top * hidden * inner / dram_read + 6e-6 on h100  (one read; 3 us a kernel to fill its ring)
// proves: bulk_copy_g2s
// proves: mbarrier_expect_tx
// proves: kernels == 2
// has: spills == 0
// scratch: __nv_bfloat16 h[tokens * top * inner]
#include <climits>
#include <cuda_bf16.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/mbarrier.cuh"

constexpr int THREADS = 256, LANES = 32, ROWS = THREADS / LANES;  // a warp has a row of a stage
constexpr int STAGES = 4;                                         // at 2880 columns 46 KB each: 138 KB are in flight per SM

// PTX ISA 9.7.9.25.4.1, cp.async.bulk: the TMA copies `bytes`, a multiple of 16, and counts them on the barrier.
__device__ void copy_rows(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// A stage: `count` rows from `first`, and as many from `second` unless that is null. `x` is what all of them are multiplied by.
struct Piece {
    const __nv_bfloat16 *first, *second, *x;
    int count;
};

// Gate and up rows of the outputs `at` to `end` of all experts chosen; an output is (token, expert, inner row).
struct GateUp {
    const __nv_bfloat16 *gate_up, *x;
    const int* chosen;
    int top, hidden, inner, at, end;
    __device__ bool done() const { return at >= end; }
    __device__ Piece piece() const {
        const int slot = at / inner, row = at % inner;
        const __nv_bfloat16* gate = gate_up + (size_t(chosen[slot]) * 2 * inner + row) * hidden;
        return {gate, gate + size_t(inner) * hidden, x + size_t(slot / top) * hidden, min(min(ROWS / 2, end - at), inner - row)};
    }
    __device__ void advance() { at += piece().count; }
};

// Rows of `down` for the outputs `at` to `end`, (token, hidden row): for each piece of rows all chosen experts, one after the other.
struct Down {
    const __nv_bfloat16 *down, *h;
    const int* chosen;
    int top, hidden, inner, at, end, k = 0;
    __device__ bool done() const { return at >= end; }
    __device__ int slot() const { return at / hidden * top + k; }
    __device__ Piece piece() const {
        const int row = at % hidden;
        const __nv_bfloat16* rows = down + (size_t(chosen[slot()]) * hidden + row) * inner;
        return {rows, nullptr, h + size_t(slot()) * inner, min(min(ROWS, end - at), hidden - row)};
    }
    __device__ void advance() {
        if (++k < top) return;
        at += piece_rows(), k = 0;
    }
    __device__ int piece_rows() const { return min(min(ROWS, end - at), hidden - at % hidden); }
};

// Calls use(cursor, dot) in every thread for every stage in order, with the product of its warp's row and x, then advances.
template <typename Cursor, typename Use>
__device__ void stream_rows(Cursor cursor, int width, Use use) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto stages = reinterpret_cast<__nv_bfloat16*>(bytes);
    __shared__ uint64_t arrived[STAGES];
    if (threadIdx.x == 0)
        for (uint64_t& barrier : arrived) barrier_init(&barrier, 1);
    __syncthreads();
    Cursor ahead = cursor;
    auto ask = [&](int stage) {  // thread 0 alone
        if (ahead.done()) return;
        const Piece piece = ahead.piece();
        const uint32_t size = piece.count * width * sizeof(__nv_bfloat16);
        __nv_bfloat16* to = stages + size_t(stage) * ROWS * width;
        barrier_expect(&arrived[stage], piece.second ? 2 * size : size);
        copy_rows(to, piece.first, size, &arrived[stage]);
        if (piece.second) copy_rows(to + ROWS / 2 * width, piece.second, size, &arrived[stage]);
        ahead.advance();
    };
    if (threadIdx.x == 0)
        for (int stage = 0; stage < STAGES - 1; stage++) ask(stage);
    for (int i = 0; !cursor.done(); i++, cursor.advance()) {
        if (threadIdx.x == 0) ask((i + STAGES - 1) % STAGES);  // what lay there was read before the last barrier
        const Piece piece = cursor.piece();
        const int warp = threadIdx.x / LANES;
        barrier_wait(&arrived[i % STAGES], i / STAGES % 2);
        const __nv_bfloat16* row = stages + (size_t(i % STAGES) * ROWS + warp) * width;
        float dot = 0;
        if (piece.second ? warp % (ROWS / 2) < piece.count : warp < piece.count) {
#pragma unroll 4
            for (int c = threadIdx.x % LANES * 8; c < width; c += LANES * 8) {
                const uint4 w = *reinterpret_cast<const uint4*>(row + c), v = *reinterpret_cast<const uint4*>(piece.x + c);
                const auto ws = reinterpret_cast<const __nv_bfloat162*>(&w), vs = reinterpret_cast<const __nv_bfloat162*>(&v);
#pragma unroll
                for (int p = 0; p < 4; p++) {
                    const float2 a = __bfloat1622float2(ws[p]), b = __bfloat1622float2(vs[p]);
                    dot += a.x * b.x + a.y * b.y;
                }
            }
        }
        for (int step = LANES / 2; step > 0; step /= 2) dot += __shfl_xor_sync(~0u, dot, step);
        use(cursor, piece.count, dot);
        __syncthreads();
    }
}

// The share of `count` outputs that this block has: the same number within one.
__device__ int share_begins(int64_t count, int block) { return int(count * block / gridDim.x); }

__global__ void __launch_bounds__(THREADS) gate_up_rows(GateUp all, int count, __nv_bfloat16* h) {
    __shared__ float sums[2][ROWS];
    all.at = share_begins(count, blockIdx.x), all.end = share_begins(count, blockIdx.x + 1);
    int parity = 0;
    stream_rows(all, all.hidden, [&](const GateUp& cursor, int rows, float dot) {
        if (threadIdx.x % LANES == 0) sums[parity][threadIdx.x / LANES] = dot;
        __syncthreads();
        if (threadIdx.x < rows) {
            const float gate = sums[parity][threadIdx.x], up = sums[parity][threadIdx.x + ROWS / 2];
            h[cursor.at + threadIdx.x] = __float2bfloat16(gate / (1 + __expf(-gate)) * up);
        }
        parity ^= 1;
    });
}

__global__ void __launch_bounds__(THREADS) down_rows(Down all, int count, const float* shares, __nv_bfloat16* y) {
    all.at = share_begins(count, blockIdx.x), all.end = share_begins(count, blockIdx.x + 1);
    float sum = 0;
    stream_rows(all, all.inner, [&](const Down& cursor, int rows, float dot) {
        sum = (cursor.k ? sum : 0) + shares[cursor.slot()] * dot;
        const int warp = threadIdx.x / LANES;
        if (cursor.k == cursor.top - 1 && threadIdx.x % LANES == 0 && warp < rows) y[cursor.at + warp] = __float2bfloat16(sum);
    });
}

PREPARE(void** state) {
    *state = nullptr;
    constexpr int most = 200 * 1024;
    if (cudaError_t code = cudaFuncSetAttribute(gate_up_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, most)) return code;
    return cudaFuncSetAttribute(down_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

LAUNCH(const __nv_bfloat16* x, const int* chosen, const float* shares, const __nv_bfloat16* gate_up, const __nv_bfloat16* down,
       __nv_bfloat16* y, __nv_bfloat16* h, int tokens, int top, int hidden, int inner, cudaStream_t stream) {
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    if (hidden % 8 || inner % 8) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (int64_t(tokens) * top * inner > INT_MAX || int64_t(tokens) * hidden > INT_MAX) return cudaErrorInvalidValue;
    if (!aligned(16, x, gate_up, down, h)) return cudaErrorMisalignedAddress;
    const size_t stage = STAGES * ROWS * sizeof(__nv_bfloat16);
    gate_up_rows<<<sms, THREADS, stage * hidden, stream>>>(GateUp{gate_up, x, chosen, top, hidden, inner}, tokens * top * inner, h);
    down_rows<<<sms, THREADS, stage * inner, stream>>>(Down{down, h, chosen, top, hidden, inner}, tokens * hidden, shares, y);
    return cudaGetLastError();
}
