// Optimized: bulk copies ahead of warps: a finding, no gain expected.
// predicts: baseline 56.3 us = 2 * hidden * vocabulary / dram_read + 4e-6 on h100  (start, last rows, and 8 waves of blocks: 4 us assumed)
// predicts: optimized 55.3 us = 2 * hidden * vocabulary / dram_read + 3e-6 on h100  (finding: DRAM was busy before; start: 3 us)
// proves: bulk_copy_g2s
// proves: mbarrier_expect_tx
// has: fence_proxy_async_shared
// has: spills == 0
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_head_stages.cuh"

constexpr int THREADS = ROWS * LANES;  // a warp has a row of a stage

__global__ void __launch_bounds__(THREADS, 2)
    head_product(const __nv_bfloat16* x, const __nv_bfloat16* weights, float* logits, int hidden, int vocabulary) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto stages = reinterpret_cast<__nv_bfloat16*>(bytes);
    __shared__ uint64_t full[STAGES];
    const Share share(vocabulary);
    auto ask = [&](int step) {  // thread 0 alone
        if (step < share.steps()) ask_for_rows(stages + step % STAGES * ROWS * hidden, weights, share, step, hidden, &full[step % STAGES]);
    };
    if (threadIdx.x == 0)
        for (uint64_t& barrier : full) barrier_init(&barrier, 1);
    __syncthreads();  // nobody waits at a barrier before it is there
    if (threadIdx.x == 0)
        for (int step = 0; step < STAGES; step++) ask(step);
    const int warp = threadIdx.x / LANES;
    for (int step = 0; step < share.steps(); step++) {
        const int stage = step % STAGES;
        barrier_wait(&full[stage], step / STAGES % 2);
        const bool mine = warp < share.count(step);
        const float part = mine ? part_of_product(stages + (stage * ROWS + warp) * hidden, x, hidden) : 0;
        __syncthreads();  // all warps have read the stage
        if (threadIdx.x == 0) {
            show_to_async_proxy();  // these reads, before the TMA writes there
            ask(step + STAGES);
        }
        if (mine) write_sum(part, logits + share.first(step) + warp);
    }
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
