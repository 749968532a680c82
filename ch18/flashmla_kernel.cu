// Latent decode attention: 16 warps, a head each, share every tile of latents; softmax runs online, so scores are never stored.
// mkdir -p build && nvcc -std=c++17 -O3 -arch=sm_90a ch18/flashmla_kernel.cu -o build/flashmla_kernel && build/flashmla_kernel
//
// -arch may be sm_80 to sm_120: no instruction here is of one architecture alone. `make -C ch18 flashmla_kernel` builds it too.
#include <cmath>
#include <cuda_bf16.h>
#include <random>
#include <vector>

#include "../ch06/shared_check.cuh"

constexpr int RANK = 512, ROPE = 64, WIDTH = RANK + ROPE;  // a token's latent is key and value; the rotary part is key alone
constexpr int HEADS = 16, TILE = 16;                       // a block's heads, and the tokens that it loads at a time
constexpr int PAIRS = WIDTH / 64, VALUES = RANK / 64;      // pairs of elements a lane

// q [sequences, heads, WIDTH] x latent [sequences, context, WIDTH] -> out [sequences, heads, RANK]. unit is log2(e) / sqrt(key width).
__global__ void __launch_bounds__(32 * HEADS)
    attend_latent(const __nv_bfloat162* q, const __nv_bfloat162* latent, float2* out, int context, int heads, float unit) {
    __shared__ __align__(16) __nv_bfloat162 tile[TILE * WIDTH / 2];
    const int lane = threadIdx.x % 32, head = blockIdx.x * HEADS + threadIdx.x / 32, sequence = blockIdx.y;
    const size_t row = size_t(sequence) * heads + head;
    float2 query[PAIRS], average[VALUES] = {};
    for (int i = 0; i < PAIRS; i++) query[i] = __bfloat1622float2(q[row * WIDTH / 2 + 32 * i + lane]);
    float top = -INFINITY, total = 0;
    const auto* from = reinterpret_cast<const uint4*>(latent + size_t(sequence) * context * WIDTH / 2);
    for (int start = 0; start < context; start += TILE) {
        const int tokens = min(TILE, context - start), first = start * (WIDTH / 8);
        __syncthreads();  // until all warps have read the last tile
        for (int i = threadIdx.x; i < tokens * WIDTH / 8; i += blockDim.x) reinterpret_cast<uint4*>(tile)[i] = from[first + i];
        __syncthreads();
        for (int token = 0; token < tokens; token++) {
            float score = 0;
            float2 kept[PAIRS];
            for (int i = 0; i < PAIRS; i++) {
                kept[i] = __bfloat1622float2(tile[token * WIDTH / 2 + 32 * i + lane]);
                score += query[i].x * kept[i].x + query[i].y * kept[i].y;
            }
            for (int other = 16; other > 0; other /= 2) score += __shfl_xor_sync(~0u, score, other);
            const float higher = fmaxf(top, score * unit), fade = exp2f(top - higher), share = exp2f(score * unit - higher);
            total = total * fade + share;
            for (int i = 0; i < VALUES; i++) {
                average[i].x = average[i].x * fade + share * kept[i].x;
                average[i].y = average[i].y * fade + share * kept[i].y;
            }
            top = higher;
        }
    }
    for (int i = 0; i < VALUES; i++) out[row * RANK / 2 + 32 * i + lane] = make_float2(average[i].x / total, average[i].y / total);
}

// The larger error; NaN, once it is there, stays.
double larger(double worst, double error) { return error > worst || std::isnan(error) ? error : worst; }

// The worst error of one head's answer against float64.
double error_of(const __nv_bfloat16* q, const __nv_bfloat16* latent, const float* out, int context, double scale) {
    std::vector<double> scores(context), answer(RANK);
    double top = -INFINITY, total = 0, worst = 0;
    for (int token = 0; token < context; token++) {
        double score = 0;
        for (int i = 0; i < WIDTH; i++) score += double(__bfloat162float(q[i])) * __bfloat162float(latent[size_t(token) * WIDTH + i]);
        scores[token] = score * scale;
        top = std::fmax(top, scores[token]);
    }
    for (int token = 0; token < context; token++) {
        const double share = std::exp(scores[token] - top);
        total += share;
        for (int i = 0; i < RANK; i++) answer[i] += share * __bfloat162float(latent[size_t(token) * WIDTH + i]);
    }
    for (int i = 0; i < RANK; i++) {
        const double error = std::fabs(answer[i] / total - out[i]);
        worst = larger(worst, error);
    }
    return worst;
}

int main() {
    const int sequences = 4, context = 1003, heads = 128;  // the last tile is not full
    const double scale = 1 / std::sqrt(192.0);             // DeepSeek-V3: keys of 128 + 64 elements before absorption
    std::mt19937 random(0);
    std::normal_distribution<float> normal;
    std::vector<__nv_bfloat16> q(sequences * heads * WIDTH), latent(sequences * context * WIDTH);
    for (auto& x : q) x = __float2bfloat16(normal(random));
    for (auto& x : latent) x = __float2bfloat16(normal(random));
    std::vector<float> out(sequences * heads * RANK);
    void *q_device, *latent_device, *out_device;
    CHECK(cudaMalloc(&q_device, q.size() * 2));
    CHECK(cudaMalloc(&latent_device, latent.size() * 2));
    CHECK(cudaMalloc(&out_device, out.size() * 4));
    CHECK(cudaMemcpy(q_device, q.data(), q.size() * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(latent_device, latent.data(), latent.size() * 2, cudaMemcpyHostToDevice));
    attend_latent<<<dim3(heads / HEADS, sequences), 32 * HEADS>>>(
        static_cast<__nv_bfloat162*>(q_device), static_cast<__nv_bfloat162*>(latent_device), static_cast<float2*>(out_device), context,
        heads, float(scale * 1.4426950408889634));
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), out_device, out.size() * 4, cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < sequences * heads; i++) {
        const auto* kept = latent.data() + size_t(i / heads) * context * WIDTH;
        const double error = error_of(q.data() + i * WIDTH, kept, out.data() + i * RANK, context, scale);
        worst = larger(worst, error);
    }
    if (!(worst < 1e-4)) {
        fprintf(stderr, "flashmla_kernel: the worst error of %d heads is %g; expected less than 1e-4\n", sequences * heads, worst);
        return 1;
    }
    printf("flashmla_kernel: %d sequences of %d tokens, %d heads: right, worst error %.1e\n", sequences, context, heads, worst);
}
