// What the two halves of the machine share: `threads.cpp` says who runs, `memory.cpp` judges what they touch.
#pragma once
#include <string>

#include "runtime.hpp"

namespace cuda_on_cpu {

constexpr size_t MOST_THREADS = 1024;
constexpr size_t STACK = 256 << 10;
constexpr uint64_t MOST_ACCESSES = 1ull << 27;    // in a launch: half a second or so
constexpr uint64_t ACCESSES_IN_A_TURN = 1 << 16;  // then others run, since a thread may wait for what another writes
constexpr size_t MOST_STATIC_SHARED = 48 << 10;
constexpr size_t MOST_SHARED = 227 << 10;

// The thread that runs; none while the host does.
struct Running {
    bool kernel = false;
    size_t rank;        // in its block
    const char* stack;  // of STACK bytes
    uint64_t accesses;  // in this turn
};
extern Running running;

extern Config config;
extern const char *closure_begin, *closure_end;
extern uint64_t block_serial;                         // of all blocks ever run
extern uint32_t interval;                             // between two barriers of a block, of all ever run
extern uint32_t warp_interval[MOST_THREADS / LANES];  // likewise between two of a warp
extern uint64_t atomics;                              // accesses of the latest call that were atomic

inline size_t warp_of(size_t rank) { return rank / LANES; }
uint3 index_of(size_t rank);

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline std::string text(uint3 v) { return text("(%u, %u, %u)", v.x, v.y, v.z); }
inline std::string text(Place place) { return text("%s:%d", place.file, place.line); }

// Notes that the host did what it must not.
void record(const std::string& what);
// Ends the kernel, with a sentence on the thread that runs.
[[noreturn]] void fail(const std::string& what);

void begin_launch_memory();
void begin_block_memory();
void forget_arrays();

}  // namespace cuda_on_cpu
