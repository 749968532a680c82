// Optimized: one warp copies for sixteen: a finding, no gain expected.
// predicts: baseline 55.3 us = 2 * hidden * vocabulary / dram_read + 3e-6 on h100  (start and last rows: 3 us assumed)
// predicts: optimized 55.3 us = 2 * hidden * vocabulary / dram_read + 3e-6 on h100  (finding: no gain; DRAM was busy before)
// proves: fewer bar_sync
// proves: more mbarrier_try_wait
// proves: block == 544
// has: bulk_copy_g2s
// has: fence_proxy_async_shared
// has: spills == 0
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_head_stages.cuh"

constexpr int CONSUMERS = ROWS;                   // warps: each has a row of a stage
constexpr int THREADS = (CONSUMERS + 1) * LANES;  // and the last one is the producer

struct Barriers {
    uint64_t full[STAGES], empty[STAGES];
};

// Step i is in stage i % STAGES, as its round i / STAGES. Phases of a barrier are numbered alike: `full` completes phase r when the rows of
// round r have landed, `empty` when all consumers have read them. So round r may be asked for once `empty` has completed phase r - 1.
__device__ void produce(Barriers& barriers, __nv_bfloat16* stages, const __nv_bfloat16* weights, Share share, int hidden) {
#pragma unroll 1
    for (int step = 0; step < share.steps(); step++) {
        const int stage = step % STAGES, round = step / STAGES;
        if (round > 0) {
            barrier_wait(&barriers.empty[stage], (round - 1) % 2);
            show_to_async_proxy();  // the consumers' reads, before the TMA writes there
        }
        ask_for_rows(stages + stage * ROWS * hidden, weights, share, step, hidden, &barriers.full[stage]);
    }
}

__device__ void consume(Barriers& barriers, const __nv_bfloat16* stages, const __nv_bfloat16* x, Share share, int hidden, float* logits) {
    const int warp = threadIdx.x / LANES;
#pragma unroll 1
    for (int step = 0; step < share.steps(); step++) {
        const int stage = step % STAGES, round = step / STAGES;
        barrier_wait(&barriers.full[stage], round % 2);
        const bool mine = warp < share.count(step);
        const float part = mine ? part_of_product(stages + (stage * ROWS + warp) * hidden, x, hidden) : 0;
        __syncwarp();  // all lanes have read the row
        if (threadIdx.x % LANES == 0) barrier_arrive(&barriers.empty[stage]);
        if (mine) write_sum(part, logits + share.first(step) + warp);
    }
}

__global__ void __launch_bounds__(THREADS, 2)
    head_product(const __nv_bfloat16* x, const __nv_bfloat16* weights, float* logits, int hidden, int vocabulary) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto stages = reinterpret_cast<__nv_bfloat16*>(bytes);
    __shared__ Barriers barriers;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : barriers.full) barrier_init(&barrier, 1);
        for (uint64_t& barrier : barriers.empty) barrier_init(&barrier, CONSUMERS);
    }
    __syncthreads();  // nobody waits at a barrier before it is there
    const Share share(vocabulary);
    if (threadIdx.x / LANES < CONSUMERS)
        consume(barriers, stages, x, share, hidden, logits);
    else if (threadIdx.x % LANES == 0)
        produce(barriers, stages, weights, share, hidden);
}

PREPARE(void** state) {
    *state = nullptr;
    return allow_stages(head_product);
}

LAUNCH(const __nv_bfloat16* x, const __nv_bfloat16* weights, float* logits, int hidden, int vocabulary, cudaStream_t stream) {
    int blocks;
    if (cudaError_t code = blocks_of(hidden, &blocks)) return code;
    if (!aligned(16, x, weights)) return cudaErrorMisalignedAddress;
    head_product<<<blocks, THREADS, STAGES * stage_bytes(hidden), stream>>>(x, weights, logits, hidden, vocabulary);
    return cudaGetLastError();
}
