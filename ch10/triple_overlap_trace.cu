// When each role of the triple overlap was busy: its kernel stamps what it does, the stamps are added up, and its twin without runs too.
// mkdir -p build && nvcc -O3 -gencode arch=compute_90a,code=sm_90a -DTRACE -I. ch10/triple_overlap_trace.cu -o build/trace && build/trace
// A file's name behind it gets all launches as JSON: ch10/triple_overlap_trace_<gpu>.json is what the chapter's README and reports show.
// Blackwell's: arch=compute_100a,code=sm_100a, -DMMA=Tcgen05 and -DSIDE='"optimized_tmem_triple_overlap.cu"'.
#include "../ch06/shared_check.cuh"
#include "shared_overlap_report.cuh"
#ifndef SIDE
#define SIDE "optimized_wgmma_triple_overlap.cu"
#define MMA Wgmma
#endif
#include SIDE

constexpr int M = 8192, N = 8192, K = 1024;  // a tile is drained every 16 steps
constexpr int MOST_TILES = (M / 128) * (N / 128);
constexpr int LAUNCHES = 20;

// Multiples of 1/8 below 1: all products and sums are exact, in whatever order.
unsigned mix(unsigned i) { return (i * 2654435761u >> 7) ^ i * 40503u; }
int eighths(unsigned i) { return int(mix(i) % 15) - 7; }

Element* matrix(int elements, unsigned seed) {
    std::vector<Element> values(elements);
    for (int i = 0; i < elements; i++) values[i] = __float2bfloat16(eighths(i + seed) / 8.0f);
    Element* device;
    CHECK(cudaMalloc(&device, elements * sizeof(Element)));
    CHECK(cudaMemcpy(device, values.data(), elements * sizeof(Element), cudaMemcpyHostToDevice));
    return device;
}

// Of 10000 elements of c, how many are not the product.
int wrong(const Element* c_device) {
    std::vector<Element> c(size_t(M) * N);
    CHECK(cudaMemcpy(c.data(), c_device, c.size() * sizeof(Element), cudaMemcpyDeviceToHost));
    int found = 0;
    for (unsigned i = 0; i < 10000; i++) {
        const unsigned row = mix(i) % M, column = mix(i + 10000) % N;
        int sum = 0;  // in 64ths
        for (int l = 0; l < K; l++) sum += eighths(row * K + l + 1) * eighths(column * K + l + 2);
        found += !(__bfloat162float(c[size_t(row) * N + column]) == __bfloat162float(__float2bfloat16(sum / 64.0f)));
    }
    return found;
}

int main(int argc, char** argv) {
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    Element *a = matrix(M * K, 1), *b = matrix(N * K, 2), *c;
    CHECK(cudaMalloc(&c, size_t(M) * N * sizeof(Element)));
    Report report{gpu.name, driver(), today(), SIDE, M, N, K, gpu.multiProcessorCount, Shared<MMA>::STAGES, 0, {}};

    Stamps stamps{{}, report.blocks, ceil_div(MOST_TILES, report.blocks) * ceil_div(K, TILE_K)};
    stamps.all.resize(size_t(POINTS) * stamps.blocks * stamps.most);
    const size_t bytes = stamps.all.size() * sizeof stamps.all[0];
    Trace to{nullptr, stamps.most};
    CHECK(cudaMalloc(&to.stamps, bytes));
    CHECK(cudaMemset(to.stamps, 0, bytes));
    CHECK(cudaMemcpyToSymbol(trace, &to, sizeof to));
    void* state;
    CHECK(prepare(&state));
    CHECK(prepare_triple_overlap<Traced<MMA>>());

    const auto untraced = [=] { return launch(a, b, c, M, N, K, nullptr); };
    const auto traced = [=] { return launch_triple_overlap<Traced<MMA>>(a, b, c, M, N, K, nullptr); };
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
    CHECK(cudaMemset(c, 0xff, size_t(M) * N * sizeof(Element)));  // NaN
    CHECK(traced());
    if (const int found = wrong(c)) {
        fprintf(stderr, "triple_overlap_trace: %d of 10000 elements are wrong; expected none\n", found);
        return 1;
    }
    print(stdout, report);
    return argc < 2 ? 0 : save(argv[1], report);
}
