// When each role of the triple overlap was busy: its kernel, built to stamp what it does, multiplies once, and the stamps are added up.
// mkdir -p build && nvcc -O3 -gencode arch=compute_90a,code=sm_90a -DTRACE -I. ch10/triple_overlap_trace.cu -o build/trace && build/trace
// Blackwell's: arch=compute_100a,code=sm_100a and -DSIDE='"optimized_tmem_triple_overlap.cu"'.
#include <vector>

#include "../ch06/shared_check.cuh"
#include "shared_overlap.cuh"
#ifndef SIDE
#define SIDE "optimized_wgmma_triple_overlap.cu"
#endif
#include SIDE

constexpr int M = 8192, N = 8192, K = 1024;  // a tile is drained every 16 steps
constexpr int MOST_TILES = (M / 128) * (N / 128);

// Multiples of 1/8 below 1: all products and sums are exact, in whatever order.
unsigned mix(unsigned i) { return (i * 2654435761u >> 7) ^ i * 40503u; }
int eighths(unsigned i) { return int(mix(i) % 15) - 7; }

std::vector<Element> matrix(int elements, unsigned seed) {
    std::vector<Element> values(elements);
    for (int i = 0; i < elements; i++) values[i] = __float2bfloat16(eighths(i + seed) / 8.0f);
    return values;
}

// What a block's stamps say of the three roles.
std::array<std::vector<Span>, ROLES> spans_of(const std::vector<unsigned long long>& stamps, int blocks, int most, int block) {
    const auto at = [&](Point point, int i) { return stamps[(size_t(point) * blocks + block) * most + i]; };
    std::array<std::vector<Span>, ROLES> busy;
    for (int i = 0; i < most; i++) {
        if (at(LOADED, i)) busy[0].push_back({at(ASKED, i), at(LOADED, i)});
        if (at(DRAINED, i)) busy[1].push_back({at(BEGUN, i), at(MULTIPLIED, i)});
        if (at(DRAINED, i)) busy[2].push_back({at(MULTIPLIED, i), at(DRAINED, i)});
    }
    return busy;
}

int main() {
    const std::vector<Element> a = matrix(M * K, 1), b = matrix(N * K, 2);
    std::vector<Element> c(size_t(M) * N);
    Element *a_device, *b_device, *c_device;
    CHECK(cudaMalloc(&a_device, a.size() * sizeof(Element)));
    CHECK(cudaMalloc(&b_device, b.size() * sizeof(Element)));
    CHECK(cudaMalloc(&c_device, c.size() * sizeof(Element)));
    CHECK(cudaMemcpy(a_device, a.data(), a.size() * sizeof(Element), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b_device, b.data(), b.size() * sizeof(Element), cudaMemcpyHostToDevice));

    int blocks = 0;
    CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
    const int most = ceil_div(MOST_TILES, blocks) * ceil_div(K, TILE_K);
    std::vector<unsigned long long> stamps(size_t(POINTS) * blocks * most);
    Trace to{nullptr, most};
    CHECK(cudaMalloc(&to.stamps, stamps.size() * sizeof stamps[0]));
    CHECK(cudaMemset(to.stamps, 0, stamps.size() * sizeof stamps[0]));
    CHECK(cudaMemcpyToSymbol(trace, &to, sizeof to));
    void* state;
    CHECK(prepare(&state));
    for (int i = 0; i < 3; i++) CHECK(launch(a_device, b_device, c_device, M, N, K, nullptr));  // the last one's stamps stay
    CHECK(cudaMemcpy(stamps.data(), to.stamps, stamps.size() * sizeof stamps[0], cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(c.data(), c_device, c.size() * sizeof(Element), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(a_device));
    CHECK(cudaFree(b_device));
    CHECK(cudaFree(c_device));
    CHECK(cudaFree(to.stamps));

    int wrong = 0;
    for (unsigned i = 0; i < 10000; i++) {
        const unsigned row = mix(i) % M, column = mix(i + 10000) % N;
        int sum = 0;  // in 64ths
        for (int l = 0; l < K; l++) sum += eighths(row * K + l + 1) * eighths(column * K + l + 2);
        wrong += !(__bfloat162float(c[size_t(row) * N + column]) == __bfloat162float(__float2bfloat16(sum / 64.0f)));
    }
    if (wrong > 0) {
        fprintf(stderr, "triple_overlap_trace: %d of 10000 elements are wrong; expected none\n", wrong);
        return 1;
    }

    std::array<unsigned long long, 1 << ROLES> time{};
    for (int block = 0; block < blocks; block++) {
        const auto of_block = time_by_set(spans_of(stamps, blocks, most, block));
        for (int set = 0; set < 1 << ROLES; set++) time[set] += of_block[set];
    }
    double all = 0;
    for (unsigned long long each : time) all += each;
    const char* const names[] = {"load", "multiply", "drain"};
    printf("%d x %d x %d on %d SMs, %.1f us each: share of their time\n", M, N, K, blocks, all / blocks / 1000);
    for (int set = 0; set < 1 << ROLES; set++) {
        printf("%6.2f %% ", 100 * time[set] / all);
        for (int role = 0; role < ROLES; role++) printf("  %-8s", set >> role & 1 ? names[role] : "");
        printf("%s\n", set ? "" : "  nobody");
    }
    for (int role = 0; role < ROLES; role++) {
        double busy = 0;
        for (int set = 0; set < 1 << ROLES; set++) busy += set >> role & 1 ? time[set] : 0;
        printf("%s %.2f %%%s", names[role], 100 * busy / all, role + 1 < ROLES ? ", " : "\n");
    }
    return 0;
}
