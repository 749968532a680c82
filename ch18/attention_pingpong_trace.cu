// How two warpgroups alternate in attention: the timed kernel with stamps of a clock, and what one did under the other's products.
// make -C ch18 attention_pingpong_trace && build/attention_pingpong_trace
// A file's name behind it gets all launches and some steps as JSON, which chrome://tracing and Perfetto open:
// ch18/attention_pingpong_trace_<gpu>.json is what the chapter's README shows and draws.
#include <cmath>
#include <cstring>
#include <random>

#include "../ch06/shared_check.cuh"
#include "shared_pingpong_report.cuh"
#include "shared_pingpong_stamped.cuh"
#define SIDE "optimized_warp_specialization_attention_cuda_with_turns.cu"
#include SIDE

using Traced = Attention<Chosen::CONSUMERS, Chosen::KEYS, Chosen::STAGES, Stamped>;
static_assert(Traced::CONSUMERS == WARPGROUPS && Stamped::WARPGROUPS == WARPGROUPS);

constexpr int HEADS = 64, QUERIES = 4096, KEYS = 4096;  // not causal: every tile of queries has as many steps
constexpr size_t ELEMENTS = size_t(HEADS) * QUERIES * DIM;
static_assert(QUERIES == KEYS);
constexpr int STEPS = (KEYS + Traced::KEYS - 1) / Traced::KEYS;  // of a tile of queries
constexpr int LAUNCHES = 20;
constexpr int DRAWN_BLOCK = 0, DRAWN_FIRST = STEPS + 6, DRAWN_STEPS = 4;  // in the middle of the block's second tile
constexpr double RTOL = 1.0 / 256, ATOL = 0.017;                          // of the pair's workload

using Values = std::vector<Element>;

Values normal(std::mt19937& random, double scale) {
    std::normal_distribution<float> draw(0, float(scale));
    Values values(ELEMENTS);
    for (Element& value : values) value = __float2bfloat16(draw(random));
    return values;
}

Element* on_gpu(const Values& values) {
    Element* device;
    CHECK(cudaMalloc(&device, ELEMENTS * sizeof(Element)));
    CHECK(cudaMemcpy(device, values.data(), ELEMENTS * sizeof(Element), cudaMemcpyHostToDevice));
    return device;
}

Values from_gpu(const Element* device) {
    Values values(ELEMENTS);
    CHECK(cudaMemcpy(values.data(), device, ELEMENTS * sizeof(Element), cudaMemcpyDeviceToHost));
    return values;
}

// Whether row `row` of all heads' queries is softmax(q k^T / sqrt(DIM)) v, in double.
bool is_right(const Values& q, const Values& k, const Values& v, const Values& y, size_t row) {
    const size_t first = row / QUERIES * KEYS * DIM;
    std::vector<double> shares(KEYS), sums(DIM);
    double total = 0;
    for (int key = 0; key < KEYS; key++) {
        double score = 0;
        for (int d = 0; d < DIM; d++) score += double(__bfloat162float(q[row * DIM + d])) * __bfloat162float(k[first + key * DIM + d]);
        total += shares[key] = std::exp(score / std::sqrt(double(DIM)));
    }
    for (int key = 0; key < KEYS; key++) {
        for (int d = 0; d < DIM; d++) sums[d] += shares[key] / total * __bfloat162float(v[first + key * DIM + d]);
    }
    for (int d = 0; d < DIM; d++) {
        if (!(std::fabs(__bfloat162float(y[row * DIM + d]) - sums[d]) <= ATOL + RTOL * std::fabs(sums[d]))) return false;
    }
    return true;
}

int main(int argc, char** argv) {
    cudaDeviceProp gpu;
    const cudaError_t none = cudaGetDeviceProperties(&gpu, 0);
    if (none || gpu.major != 9) {
        fprintf(stderr, "attention_pingpong_trace: found %s; expected a Hopper GPU\n", none ? cudaGetErrorString(none) : gpu.name);
        return 1;
    }
    std::mt19937 random(0);
    const Values q = normal(random, 1), k = normal(random, 1), v = normal(random, std::sqrt(KEYS / std::exp(1.0)));
    const Element *q_gpu = on_gpu(q), *k_gpu = on_gpu(k), *v_gpu = on_gpu(v);
    Element* y_gpu;
    CHECK(cudaMalloc(&y_gpu, ELEMENTS * sizeof(Element)));

    const int tiles = ceil_div(QUERIES, Traced::QUERIES) * HEADS, blocks = std::min(gpu.multiProcessorCount, tiles);
    Stamps stamps{{}, blocks, ceil_div(tiles, blocks) * STEPS};
    stamps.all.resize(size_t(blocks) * WARPGROUPS * stamps.most * POINTS);
    const size_t bytes = stamps.all.size() * sizeof stamps.all[0];
    Trace to{nullptr, uint32_t(stamps.most)};
    CHECK(cudaMalloc(&to.stamps, bytes));
    CHECK(cudaMemset(to.stamps, 0, bytes));
    CHECK(cudaMemcpyToSymbol(trace, &to, sizeof to));
    CHECK(prepare_attention<Traced>());
    CHECK(prepare_attention<Chosen>());

    Report report{gpu.name, driver(), today(), SIDE, HEADS, QUERIES, KEYS, blocks, 0, {}, DRAWN_BLOCK, {}};
    const auto traced = [=] { return launch_attention<Traced>(q_gpu, k_gpu, v_gpu, y_gpu, HEADS, QUERIES, KEYS, nullptr); };
    const auto untraced = [=] { return launch_attention<Chosen>(q_gpu, k_gpu, v_gpu, y_gpu, HEADS, QUERIES, KEYS, nullptr); };
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int i = 0; i < LAUNCHES; i++) {
        double with_us, without_us;
        CHECK(time_call(traced, begin, end, &with_us));
        CHECK(time_call(untraced, begin, end, &without_us));
        CHECK(cudaMemcpy(stamps.all.data(), to.stamps, bytes, cudaMemcpyDeviceToHost));
        report.launches.push_back({with_us, without_us, shares_of(stamps)});
    }
    report.clock_step_ns = clock_step(stamps);
    report.events = events_of(stamps, DRAWN_BLOCK, DRAWN_FIRST, DRAWN_STEPS);

    Values answers[2];
    for (int with = 0; with < 2; with++) {
        CHECK(cudaMemset(y_gpu, 0xff, ELEMENTS * sizeof(Element)));  // NaN
        CHECK(with ? traced() : untraced());
        answers[with] = from_gpu(y_gpu);
    }
    if (memcmp(answers[0].data(), answers[1].data(), ELEMENTS * sizeof(Element))) {
        fprintf(stderr, "attention_pingpong_trace: found another answer with stamps than without; expected the same bits\n");
        return 1;
    }
    int wrong = 0;
    constexpr int CHECKED = 64;
    for (int i = 0; i < CHECKED; i++) wrong += !is_right(q, k, v, answers[1], random() % (size_t(HEADS) * QUERIES));
    if (wrong) {
        fprintf(stderr, "attention_pingpong_trace: %d of %d rows are wrong; expected none\n", wrong, CHECKED);
        return 1;
    }
    print(stdout, report);
    return argc < 2 ? 0 : save(argv[1], report);
}
