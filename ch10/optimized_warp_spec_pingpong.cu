// Optimized: ping-pong: GELU of one tile hides under another's products.
// predicts: optimized = 0.797 x baseline  (cycles per tile: 5400 for 224 KB through the L2, not 3072 of products + 3700 to drain)
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

// Each side has the form of GELU that is faster in it: called here, inlined in the baseline. The workload says why.
using Wgmma = WgmmaSums<2, CalledGelu>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
