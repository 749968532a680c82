// Optimized: one kernel a token prefetches the next layer into the L2.
// predicts: baseline 111 us = (layers * 12 + 3) * 2.1e-6 + 8e6 / dram_read + graph_launch on h100    (12 kernels a layer, 2.1 us each)
// predicts: optimized 56.7 us = (layers * 5 + 1) * (1.8e-6 + 1200 / sm_clock) + 8e6 / dram_read + launch on h100  (21 phases: README)
// proves: kernels == 1
// has: l2_prefetch
// has: ld_128bit
// has: spills == 0
// scratch: float x[hidden]
// scratch: float q[heads * 64]
// scratch: float sums[heads * (context / 32 + 1) * 64]
// scratch: float stats[heads * (context / 32 + 1) * 2]
// scratch: float act[inner]
#include "shared_decode.cuh"

LAUNCH(const int* token, const __nv_bfloat16* embedding, const __nv_bfloat16* qkv, const __nv_bfloat16* o, const __nv_bfloat16* gate_up,
       const __nv_bfloat16* down, const __nv_bfloat16* norms, const __nv_bfloat16* last_norm, const float* turn, __nv_bfloat16* keys,
       __nv_bfloat16* values, __nv_bfloat16* logits, float* x, float* q, float* sums, float* act, float* stats, int layers, int hidden,
       int heads, int kv, int inner, int vocabulary, int context, cudaStream_t stream) {
    const auto pairs = reinterpret_cast<float2*>(stats);
    const Step step{token, embedding, qkv,  o,   gate_up, down,   norms,  last_norm, turn, keys,  values,     logits,
                    x,     q,         sums, act, pairs,   layers, hidden, heads,     kv,   inner, vocabulary, context};
    return decode_token<true>(step, stream);
}
