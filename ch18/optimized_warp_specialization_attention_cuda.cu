// Optimized: CUDA: no turns; each warpgroup hides its own softmax.
// predicts: baseline 1.99 ms = heads * queries * (keys + 128) * (256 / bf16 + 1.35e-13) on h100  (half of softmax hidden: assumed)
// predicts: optimized 1.91 ms = 1.015 * (1 - causal / 2) * heads * queries * keys * (256 / bf16 + 5.4e-13) + 16 * 1.7e-6 on h100
// needs: wgmma
// nvcc: -ftz=true
// proves: /\bUSETMAXREG\b/
// has: not bar_arrive
// has: tma_load_tile
// has: wgmma_f16_bf16
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_attention_kernel.cuh"

struct Chosen : Attention<2, 192, 2> {
    static constexpr bool TURNS = false;
};

PREPARE(void** state) {
    *state = nullptr;
    const cudaError_t error = prepare_attention<Chosen>();
    return error ? error : prepare_attention<Chosen, true>();
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* y, int heads, int queries, int keys,
       int causal, cudaStream_t stream) {
    return (causal ? launch_attention<Chosen, true> : launch_attention<Chosen>)(q, k, v, y, heads, queries, keys, stream);
}
