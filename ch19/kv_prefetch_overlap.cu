// Decode attention over pages of keys and values: cp.async brings the next pages while one is multiplied. Checks itself.
// mkdir -p build && nvcc -std=c++20 -O3 -arch=sm_90a -I. ch19/kv_prefetch_overlap.cu -o build/ch19_kv_prefetch && build/ch19_kv_prefetch
//
// -arch may be sm_80 to sm_120. `make -C ch19 kv_prefetch_overlap` builds it too.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch19/optimized_kv_prefetch_overlap_cuda.cu"

// The larger error; NaN, once it is there, stays.
double larger(double worst, double error) { return error > worst || std::isnan(error) ? error : worst; }

// The worst error of one query head's answer against float64. `table` has its sequence's pages; keys and values are those of head `head`.
double error_of(const Element* q, const Element* keys, const Element* values, const int* table, const float* out, int context, int kv_heads,
                int head) {
    std::vector<double> scores(context), answer(DIM);
    double top = -INFINITY, total = 0, worst = 0;
    const auto row = [&](int token) { return ((size_t(table[token / PAGE]) * kv_heads + head) * PAGE + token % PAGE) * DIM; };
    for (int token = 0; token < context; token++) {
        double score = 0;
        for (int i = 0; i < DIM; i++) score += double(__bfloat162float(q[i])) * __bfloat162float(keys[row(token) + i]);
        scores[token] = score / std::sqrt(double(DIM));
        top = std::fmax(top, scores[token]);
    }
    for (int token = 0; token < context; token++) {
        const double share = std::exp(scores[token] - top);
        total += share;
        for (int i = 0; i < DIM; i++) answer[i] += share * __bfloat162float(values[row(token) + i]);
    }
    for (int i = 0; i < DIM; i++) worst = larger(worst, std::fabs(answer[i] / total - out[i]));
    return worst;
}

template <typename T>
T* on_device(const std::vector<T>& host) {
    T* device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

int main() {
    const int sequences = 4, kv_heads = 8, context = 1003, each = ceil_div(context, PAGE);  // the last page is not full
    const int heads = kv_heads * GROUP;
    std::mt19937 random(0);
    std::normal_distribution<float> normal;
    std::vector<Element> q(sequences * heads * DIM), keys(sequences * each * kv_heads * PAGE * DIM), values(keys.size());
    for (auto& x : q) x = __float2bfloat16(2 * normal(random));
    for (auto& x : keys) x = __float2bfloat16(normal(random));
    for (auto& x : values) x = __float2bfloat16(normal(random));
    std::vector<int> table(sequences * each);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    std::vector<float> out(q.size(), NAN);
    float* answers = on_device(out);
    void* state;
    CHECK(prepare(&state));
    CHECK(launch(on_device(q), on_device(keys), on_device(values), on_device(table), answers, sequences, kv_heads, context, 0));
    CHECK(cudaMemcpy(out.data(), answers, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < sequences * heads; i++) {
        const int* pages = table.data() + i / heads * each;
        const int head = i % heads / GROUP;
        worst = larger(worst, error_of(&q[i * DIM], keys.data(), values.data(), pages, &out[i * DIM], context, kv_heads, head));
    }
    if (!(worst < 1e-4)) {
        fprintf(stderr, "kv_prefetch_overlap: the worst error of %d heads is %g; expected less than 1e-4\n", sequences * heads, worst);
        return 1;
    }
    printf("kv_prefetch_overlap: %d sequences of %d tokens, %d heads: right, worst error %.1e\n", sequences, context, heads, worst);
}
