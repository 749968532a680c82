// Optimized: load, multiply and drain overlap, in ping-pong.
// predicts: baseline 2.71 ms on h200  (a former row of this kernel, not arithmetic)
// predicts: optimized 1.40 ms on h200  (a former row of these tiles, from another card)
// predicts@shallow: baseline 0.409 ms on h200  (the former row)
// predicts@shallow: optimized 0.183 ms on h200  (the former row, from another card)
// proves: tma_load_tile
// proves: tma_store
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// proves: counter sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active > 1.5 x baseline
// has: wgmma_f16_bf16
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_triple_overlap.cuh"
#include "shared_wgmma_sums.cuh"

// A tile of 128 rows belongs to one warpgroup, and two warpgroups alternate. The tile has 192 columns, because its sums take 192 of the 232
// registers of a thread. A K-step's products take 768 cycles. They read 64 KB while the TMA writes 40 KB. Shared memory needs 832 cycles
// for that, at 128 bytes per cycle. With 128 columns it would need 640 cycles for 512 cycles of products, which is worse.
// The baseline's registers hold what it loads as well as its sums, so 128 columns suit it better.
using Wgmma = WgmmaSums<2, AsItIs, 192>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
