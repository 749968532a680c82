// Optimized: CUDA: warpgroups multiply under each other's exponentials.
// predicts: with_turns 1.44 ms = 1.015 * (1 - causal / 2) * heads * queries * keys * 512 / bf16 + 16 * 1.7e-6 on h100  (edges; softmax)
// needs: wgmma
// nvcc: -ftz=true
// proves: /\bUSETMAXREG\b/
// proves: bar_arrive
// has: tma_load_tile
// has: wgmma_f16_bf16
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_attention_kernel.cuh"

using Chosen = Attention<2, 192, 2>;

PREPARE(void** state) {
    *state = nullptr;
    const cudaError_t error = prepare_attention<Chosen>();
    return error ? error : prepare_attention<Chosen, true>();
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* y, int heads, int queries, int keys,
       int causal, cudaStream_t stream) {
    return (causal ? launch_attention<Chosen, true> : launch_attention<Chosen>)(q, k, v, y, heads, queries, keys, stream);
}
