// Optimized: the TMA loads six steps ahead, and of two warpgroups one multiplies its tile while the other drains the tile before.
// expects: 1.4x, a step of the baseline is 900 cycles of loading and 512 of products, so its two blocks an SM multiply in 1024 of 1412
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

// A tile is one warpgroup's, all 128 rows of it, and the two take turns.
using Wgmma = WgmmaSums<2>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
