// One kernel that decodes a token, with or without prefetches of the next layer into the L2, and its cooperative launch.
#pragma once
#include <algorithm>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_attention.cuh"
#include "shared_phases.cuh"

// What a phase writes and the next one reads is named beside the wait between them. Overwriting is ordered too. Between the last read of x
// by other blocks and a write lie two barriers in the third phase, one in the fifth; q, sums and act have four.
// Before a wait a warp reads what no other block writes meanwhile: weights, cached keys but the last, elements of x that are its own.
// A kernel that loaded weights after each barrier, and gave attention to 64 of 1056 warps, lost to the graph on an H100.
template <bool PREFETCH>
__global__ void __launch_bounds__(THREADS, 1) decode(const Step s) {
    __shared__ __align__(16) float h[MOST];
    __shared__ float turn[DIM];
    const size_t o = size_t(s.hidden) * s.heads * DIM, mlp = size_t(s.inner) * s.hidden;
    const int width = (s.heads + 2 * s.kv) * DIM;
    GridBarrier all;
    const Product<1> head{s.embedding, s.vocabulary, s.hidden};
    Product<2> project{s.qkv, width / 2, s.hidden, HALF};
    auto rows = fetch(project, warp());
    auto norm = fetch_norm(s.norms, s.hidden);
    if constexpr (PREFETCH) prefetch_layer(s, 0);
    if (threadIdx.x < DIM) turn[threadIdx.x] = s.turn[threadIdx.x];
    for (int u = warp(); u < s.hidden; u += warps())
        if (lane() == 0) s.x[u] = embedded(s, u);
    for (int layer = 0; layer < s.layers; layer++) {
        const Product<1> out{s.o + layer * o, s.hidden, s.heads * DIM, 1, s.x}, down{s.down + layer * mlp, s.hidden, s.inner, 1, s.x};
        const Product<2> gate_up{s.gate_up + layer * 2 * mlp, s.inner, s.hidden, s.inner};

        float scale = normalize(h, s, norm, layer > 0);
        multiply(rows, project, h, [&](int u, float, const float* sum) { put(s, turn, layer, u, sum[0] * scale, sum[1] * scale); });
        all.arrive();
        const Cached first = fetch_cached(s, layer);
        if constexpr (PREFETCH) prefetch_layer(s, layer + 1);
        all.wait();  // for q of all heads; the last slot of keys and values

        attend(s, layer, first);
        all.arrive();
        auto row = fetch(out, warp());
        all.wait();  // for sums and stats of all splits

        merge(h, s);
        multiply(row, out, h, [&](int u, float before, const float* sum) { s.x[u] = before + *sum; });
        all.arrive();
        rows = fetch(gate_up, warp());
        norm = fetch_norm(s.norms + size_t(2 * layer + 1) * s.hidden, s.hidden);
        all.wait();  // for x, with attention added

        scale = normalize(h, s, norm, true);
        multiply(rows, gate_up, h, [&](int u, float, const float* sum) {
            const float gate = sum[0] * scale;
            s.act[u] = gate / (1 + __expf(-gate)) * sum[1] * scale;
        });
        all.arrive();
        row = fetch(down, warp());
        all.wait();  // for act

#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (const int i = threadIdx.x + e * THREADS; i < s.inner) h[i] = s.act[i];
        __syncthreads();
        multiply(row, down, h, [&](int u, float before, const float* sum) { s.x[u] = before + *sum; });
        all.arrive();
        const bool last = layer + 1 == s.layers;
        project.weights += size_t(width) * s.hidden;
        if (!last) rows = fetch(project, warp());
        norm = fetch_norm(last ? s.last_norm : s.norms + size_t(2 * layer + 2) * s.hidden, s.hidden);
        all.wait();  // for x, with the layer added
    }
    auto row = fetch(head, warp());
    const float scale = normalize(h, s, norm, true);
    multiply(row, head, h, [&](int u, float, const float* sum) { s.logits[u] = __float2bfloat16(*sum * scale); });
}

// `s` but for the splits of keys, which depend on how many blocks run at once.
template <bool PREFETCH>
cudaError_t decode_token(Step s, cudaStream_t stream) {
    if (s.hidden % 8 || s.inner % 8 || s.hidden > MOST || s.inner > MOST || s.heads * DIM > MOST || s.heads % s.kv)
        return cudaErrorInvalidValue;
    if (!aligned(16, s.embedding, s.qkv, s.o, s.gate_up, s.down, s.keys, s.values, s.q)) return cudaErrorMisalignedAddress;
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    const int blocks = std::min(sms, MOST_BLOCKS);
    s.split = ceil_div(ceil_div(s.context, std::max(1, blocks / s.heads)), TOGETHER) * TOGETHER;
    s.splits = ceil_div(s.context, s.split);
    cudaLaunchAttribute together;
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = blocks, launch.blockDim = THREADS, launch.stream = stream, launch.attrs = &together, launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, decode<PREFETCH>, s);
}
