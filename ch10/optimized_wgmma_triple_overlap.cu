// Optimized: ping-pong: one warpgroup drains while one multiplies.
// predicts: baseline 2.71 ms on h200  (a former row of this kernel, not arithmetic)
// predicts: optimized 1.40 ms on h200  (a former row of these tiles, from another card)
// predicts@shallow: baseline 0.409 ms on h200  (the former row)
// predicts@shallow: optimized 0.183 ms on h200  (the former row, from another card)
// proves: tma_load_tile
// proves: tma_store
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// has: wgmma_f16_bf16
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_triple_overlap.cuh"
#include "shared_wgmma_sums.cuh"

// A tile is one warpgroup's, all 128 rows of it, and the two take turns. It is as wide as there are registers for its sums, 192 of 232:
// shared memory moves 128 bytes a cycle, and for a step's products, 768 cycles, which read 64 KB while the TMA writes 40 KB, it takes 832.
// With 128 columns it would take 640 for 512. The baseline's registers hold what it loads as well as its sums: 128 columns suit it better.
using Wgmma = WgmmaSums<2, AsItIs, 192>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
