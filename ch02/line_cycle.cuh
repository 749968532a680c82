// How fast a GPU reads a memory, for this chapter's programs: a working set of lines, each of which names the next in one random cycle.
// Reading all of it gives the bandwidth, following the cycle the latency. Both end with numbers that the host can check.
#pragma once
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ch06/shared_check.cuh"

constexpr int LINE = 128;  // bytes
constexpr int WORDS = LINE / 4;
constexpr int HOPS = 4096;            // of the one thread that measures latency
constexpr int TRIES = 5;              // the fastest counts
constexpr size_t LEAST = 256u << 20;  // bytes to read for a bandwidth, several times over where the working set is smaller
constexpr int BLOCK = 256, BLOCKS_PER_SM = 8;

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

// The fastest of TRIES of what `launch()` queues on the default stream of the current device, in milliseconds.
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

// A cycle through `bytes` of lines: the line that follows each. `bytes` is a power of two, at least LINE.
inline std::vector<unsigned> cycle_of(size_t bytes) {
    std::vector<unsigned> order(bytes / LINE), cycle(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < order.size(); i++) cycle[order[i]] = order[(i + 1) % order.size()];
    return cycle;
}

// The working set that holds `cycle`, as it lies in memory.
inline std::vector<unsigned> set_of(const std::vector<unsigned>& cycle) {
    std::vector<unsigned> words(cycle.size() * WORDS, 0);
    for (size_t i = 0; i < cycle.size(); i++) words[i * WORDS] = cycle[i];
    return words;
}

// Prints how fast the current device reads `set`, which holds `cycle` and lies in `memory`; false if a kernel read anything else.
inline bool measured(const char* memory, const unsigned* set, const std::vector<unsigned>& cycle) {
    const size_t lines = cycle.size(), bytes = lines * LINE, read = std::max(bytes, LEAST);
    unsigned long long *sum, found_sum, right = lines * (lines - 1) / 2 * (read / bytes) * TRIES;
    unsigned *at, found_line, line = 0;
    int device, sms;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cudaMalloc(&at, sizeof *at));
    CHECK(cudaMemset(sum, 0, sizeof *sum));
    CHECK(cudaMemset(at, 0, sizeof *at));
    const uint4* quads = reinterpret_cast<const uint4*>(set);
    const float pass = fastest([&] { read_all<<<BLOCKS_PER_SM * sms, BLOCK>>>(quads, bytes / 16, read / 16, sum); });
    const float walk = fastest([&] { chase<<<1, 1>>>(set, at); });
    CHECK(cudaMemcpy(&found_sum, sum, sizeof *sum, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&found_line, at, sizeof *at, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(sum));
    CHECK(cudaFree(at));
    for (int hop = 0; hop < TRIES * HOPS; hop++) line = cycle[line];
    if (found_sum != right || found_line != line) {
        fprintf(stderr, "%s: found sum %llu, line %u; expected %llu, %u\n", memory, found_sum, found_line, right, line);
        return false;
    }
    printf("%-9s %6zu MiB %10.1f GB/s %8.0f ns\n", memory, bytes >> 20, read / pass / 1e6, walk * 1e6 / HOPS);
    return true;
}
