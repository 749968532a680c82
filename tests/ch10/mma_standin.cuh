// What ch09/shared_mma.cuh does, on a CPU: where PTX says that each element of a fragment lies, and nothing taken from the sides.
//
// The lanes of a warp ask one after the other, in the same order of requests; the last to ask does what all asked for. So no lane waits,
// a request may be as late as the slowest lane, and what is read from shared memory by then is what the fragments hold.
#pragma once
#include <cstdlib>
#include <cstring>

// Not in tests/emulation, which would put the real header in place of a quoted one; in tests/ch10/on_cpu its stand-in is found.
#ifndef CUDA_ON_CPU_HERE
#include <common/cuda/mbarrier.cuh>
#endif

namespace standin {
constexpr int LANES = 32, WARPS = 8, AHEAD = 4096;  // requests that a lane may be ahead of the slowest

struct Request {
    void (*what)(const Request&);
    void* to[LANES];
    const void *first[LANES], *second[LANES];
    int asked;
};
inline Request requests[WARPS][AHEAD];
inline unsigned made[WARPS * LANES];

// Registers are other threads' stacks, which a machine that judges accesses would not allow.
inline void move(void* to, const void* from, size_t bytes) {
#ifdef CUDA_ON_CPU_HERE
    cuda_on_cpu::move_bytes(to, from, bytes);
#else
    std::memcpy(to, from, bytes);
#endif
}

inline void ask(void (*what)(const Request&), void* to, const void* first, const void* second) {
    const int thread = threadIdx.x, lane = thread % LANES;
    Request& request = requests[thread / LANES][made[thread]++ % AHEAD];
    if (request.asked && request.what != what) abort();
    request.what = what;
    request.to[lane] = to;
    request.first[lane] = first;
    request.second[lane] = second;
    if (++request.asked < LANES) return;
    request.asked = 0;
    what(request);
}

// Before a block that follows one which was broken off.
extern "C" inline __attribute__((used, visibility("default"))) void forget() {
    std::memset(requests, 0, sizeof requests);
    std::memset(made, 0, sizeof made);
}

// PTX ISA, ldmatrix .x4: lane 8 i + r names row r of matrix i; of it lane l gets elements 2 (l % 4) and one more of row l / 4.
inline void load(const Request& request) {
    for (int lane = 0; lane < LANES; lane++) {
        unsigned words[4];
        for (int i = 0; i < 4; i++) words[i] = static_cast<const unsigned*>(request.first[8 * i + lane / 4])[lane % 4];
        move(request.to[lane], words, sizeof words);
    }
}

// PTX ISA, mma.m16n8k16, bf16: lane l has in a[i] row l / 4 + 8 (i % 2), columns l % 4 * 2 + 8 (i / 2) and one more; in b[i] rows
// l % 4 * 2 + 8 i and one more of column l / 4; in c[i] row l / 4 + 8 (i / 2), column l % 4 * 2 + i % 2.
__attribute__((no_sanitize("thread", "undefined"))) inline void multiply(const Request& request) {
    float a[16][16], b[8][16];
    for (int lane = 0; lane < LANES; lane++) {
        unsigned words[6];
        move(words, request.first[lane], 16);
        move(words + 4, request.second[lane], 8);
        for (int i = 0; i < 6; i++) {
            const int k = lane % 4 * 2 + (i < 4 ? i / 2 : i - 4) * 8;
            float* to = i < 4 ? &a[lane / 4 + i % 2 * 8][k] : &b[lane / 4][k];
            const unsigned pair[2] = {words[i] << 16, words[i] & 0xFFFF0000u};
            move(to, pair, sizeof pair);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        float c[4];
        move(c, request.to[lane], sizeof c);
        for (int i = 0; i < 4; i++) {
            for (int k = 0; k < 16; k++) c[i] += a[lane / 4 + i / 2 * 8][k] * b[lane % 4 * 2 + i % 2][k];
        }
        move(request.to[lane], c, sizeof c);
    }
}

#ifndef CUDA_ON_CPU_HERE
inline const bool begins = [] {
    on_cpu::begin_cluster = [] {
        on_cpu::barriers.clear();
        forget();
    };
    return true;
}();
#endif
}  // namespace standin

__device__ void ldmatrix(unsigned (&to)[4], const void* row) { standin::ask(standin::load, to, row, nullptr); }
__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned* b) { standin::ask(standin::multiply, c, a, b); }
