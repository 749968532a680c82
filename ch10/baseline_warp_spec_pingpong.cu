// Baseline: two warpgroups share a tile: both multiply, then both drain.
// has: tma_load_tile
// has: tma_store
// has: wgmma_f16_bf16
// has: setmaxnreg_inc
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_gelu.cuh"
#include "shared_triple_overlap.cuh"
#include "shared_wgmma_sums.cuh"

using Wgmma = WgmmaSums<1, Gelu>;

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
