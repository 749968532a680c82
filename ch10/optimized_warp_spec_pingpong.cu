// Optimized: ping-pong: GELU of one tile hides under another's products.
// expects: 1.25x at width 384: a tile's 3072 cycles of products and 3700 of draining it hide in 5400 of loads, 224 KB at the L2's 9.84 TB/s
// proves: more mbarrier_try_wait
// has: tma_load_tile
// has: tma_store
// has: wgmma_f16_bf16
// has: setmaxnreg_inc
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_gelu.cuh"
#include "shared_triple_overlap.cuh"
#include "shared_wgmma_sums.cuh"

// GELU in the form that is faster in this side, as the baseline has it in the one that is faster there: the workload says why.
using Wgmma = WgmmaSums<2, CalledGelu>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
