// Bandwidth and latency by memory and working set: HBM, the L2, pinned memory of the host, and pageable where a kernel can read it.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch02/memory_tiers.cu -o build/memory_tiers && build/memory_tiers
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ch06/shared_check.cuh"

constexpr int LINE = 128;  // bytes: each line begins with the number of the next, in one random cycle through all
constexpr int WORDS = LINE / 4;
constexpr int HOPS = 4096;            // of the one thread that measures latency
constexpr int TRIES = 5;              // the fastest counts
constexpr size_t LEAST = 256u << 20;  // bytes that the bandwidth's kernel reads, several times over where the working set is smaller
constexpr int BLOCK = 256;

// Adds up `quads` reads of 16 bytes of a working set of `size` of them, a power of two, past the L1.
__global__ void read_all(const uint4* set, size_t size, size_t quads, unsigned long long* sum) {
    unsigned long long mine = 0;
    const size_t step = size_t(gridDim.x) * BLOCK;
#pragma unroll 8
    for (size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x; i < quads; i += step) {
        const uint4 quad = __ldcg(&set[i & (size - 1)]);
        mine += quad.x + quad.y + quad.z + quad.w;
    }
    atomicAdd(sum, mine);
}

// From line `*at` on, HOPS lines further: each address is known only when the line before it has arrived.
__global__ void chase(const unsigned* set, unsigned* at) {
    unsigned line = *at;
    for (int hop = 0; hop < HOPS; hop++) line = __ldcg(&set[size_t(line) * WORDS]);
    *at = line;
}

// The fastest of TRIES, in milliseconds.
template <typename Launch>
float fastest(Launch launch) {
    cudaEvent_t begin, end;
    float now, least = 1e30f;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int tries = 0; tries < TRIES; tries++) {
        CHECK(cudaEventRecord(begin));
        launch();
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&now, begin, end));
        least = std::min(least, now);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return least;
}

// Prints a row of the table for `set`, which holds `cycle`; false if a kernel read anything else.
bool measured(const char* memory, const unsigned* set, const std::vector<unsigned>& cycle, int blocks) {
    const size_t lines = cycle.size(), bytes = lines * LINE, read = std::max(bytes, LEAST);
    unsigned long long* sum;
    unsigned *at, line = 0;
    CHECK(cudaMallocManaged(&sum, sizeof *sum));
    CHECK(cudaMallocManaged(&at, sizeof *at));
    *sum = *at = 0;
    const float pass = fastest([&] { read_all<<<blocks, BLOCK>>>(reinterpret_cast<const uint4*>(set), bytes / 16, read / 16, sum); });
    const float walk = fastest([&] { chase<<<1, 1>>>(set, at); });
    for (int hop = 0; hop < TRIES * HOPS; hop++) line = cycle[line];
    const unsigned long long right = lines * (lines - 1) / 2 * (read / bytes) * TRIES;
    const bool is_right = *sum == right && *at == line;
    if (is_right) printf("%-9s %6zu MiB %10.1f GB/s %8.0f ns\n", memory, bytes >> 20, read / pass / 1e6, walk * 1e6 / HOPS);
    if (!is_right) fprintf(stderr, "memory_tiers: %s: found sum %llu, line %u; expected %llu, %u\n", memory, *sum, *at, right, line);
    CHECK(cudaFree(sum));
    CHECK(cudaFree(at));
    return is_right;
}

int main() {
    int sms, reads_pageable;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, 0));
    printf("memory    working set  bandwidth       latency\n");
    bool is_right = true;
    for (size_t bytes : {size_t(1) << 20, size_t(16) << 20, size_t(256) << 20}) {
        std::vector<unsigned> order(bytes / LINE), cycle(order.size()), lines(bytes / 4, 0);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), std::mt19937(1));
        for (size_t i = 0; i < order.size(); i++) cycle[order[i]] = order[(i + 1) % order.size()];
        for (size_t i = 0; i < cycle.size(); i++) lines[i * WORDS] = cycle[i];
        unsigned *device, *pinned;
        CHECK(cudaMalloc(&device, bytes));
        CHECK(cudaMallocHost(&pinned, bytes));
        CHECK(cudaMemcpy(device, lines.data(), bytes, cudaMemcpyHostToDevice));
        std::copy(lines.begin(), lines.end(), pinned);
        is_right &= measured("device", device, cycle, 8 * sms);
        is_right &= measured("pinned", pinned, cycle, 8 * sms);
        if (reads_pageable) is_right &= measured("pageable", lines.data(), cycle, 8 * sms);
        CHECK(cudaFree(device));
        CHECK(cudaFreeHost(pinned));
    }
    if (!reads_pageable)
        printf("pageable: SKIPPED, needs a GPU whose kernels read it (HMM, or NVLink-C2C); copies of it: benchmark_cli peak\n");
    return is_right ? 0 : 1;
}
