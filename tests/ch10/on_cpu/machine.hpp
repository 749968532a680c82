// One block at a time on a CPU: threads are fibers that run until they wait; copies and products run late, early, or in between.
//
// What hardware may do at any time is an operation in a queue; operations of a queue run in its order, queues in any. A seed decides what
// runs next, and how lazy the queues are. A wait named in `skipped`, as file:line, does not wait. What a program must not do is an error.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __restrict__

struct Index {
    int x = 0;
};
inline Index threadIdx, blockIdx, gridDim;

namespace on_cpu {

constexpr size_t SHARED = 227 << 10, STACK = 128 << 10;
alignas(1024) inline unsigned char shared_memory[SHARED];
inline std::string error, skipped;
inline std::mt19937 chance;
inline int laziness = 0;  // 0: operations run as soon as anything may, 1: by chance, 2: when no thread can go on
inline int multiprocessors = 1;
inline uint32_t seed = 0;

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    std::function<bool()> ready = [] { return true; };
    bool ended = false;
};
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline std::map<std::string, std::deque<std::function<void()>>> queues;
inline std::function<void()> body;

inline void leave() { swapcontext(&fibers[threadIdx.x].context, &scheduler); }
inline void fail(const std::string& what) {
    if (error.empty()) error = what;
    leave();
}
inline void require(bool holds, const std::string& what) {
    if (!holds) fail(what);
}
inline void wait(std::function<bool()> ready) {
    fibers[threadIdx.x].ready = std::move(ready);
    leave();
}
inline bool sometimes() { return chance() % 4 == 0; }
inline void pause() {
    if (sometimes()) wait([] { return true; });
}
inline bool skips(const char* file, int line) {
    const std::string path(file);
    return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) == skipped;
}

// Threads of a group that meet: a barrier of `count` threads.
struct Meeting {
    int arrived = 0, times = 0;
    void meet(int count) {
        const int now = times;
        if (++arrived == count) {
            arrived = 0;
            times++;
        }
        wait([this, now] { return times != now; });
    }
};
inline std::map<int, Meeting> meetings;
// What is .sync.aligned: all lanes of a warp have come so far.
inline void meet_warp() { meetings[100 + threadIdx.x / 32].meet(32); }

inline void enter() {
    body();
    fibers[threadIdx.x].ended = true;
    leave();
}

// By odd seeds a queue is as slow as its name says: one may be passed over until nothing else is left.
inline bool run_operation() {
    std::vector<std::string> names;
    for (auto& [name, queue] : queues) {
        if (!queue.empty()) names.push_back(name);
    }
    if (names.empty()) return false;
    const auto slowness = [](const std::string& name) { return std::hash<std::string>{}(name + std::to_string(seed)); };
    std::string name = names[chance() % names.size()];
    if (seed % 2) name = *std::min_element(names.begin(), names.end(), [&](auto& x, auto& y) { return slowness(x) < slowness(y); });
    auto operation = std::move(queues[name].front());
    queues[name].pop_front();
    if (queues[name].empty()) queues.erase(name);
    operation();
    return true;
}

inline bool run_thread() {
    const size_t first = chance() % fibers.size();
    for (size_t i = 0; i < fibers.size(); i++) {
        const size_t thread = (first + i) % fibers.size();
        if (fibers[thread].ended || !fibers[thread].ready()) continue;
        threadIdx.x = static_cast<int>(thread);
        swapcontext(&scheduler, &fibers[thread].context);
        return true;
    }
    return false;
}

inline void run_block(int threads) {
    fibers.clear();
    fibers.resize(threads);
    queues.clear();
    meetings.clear();
    for (size_t i = 0; i < SHARED; i += 2) std::memcpy(shared_memory + i, "\xff\x7f", 2);  // NaN in bf16
    for (Fiber& fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        makecontext(&fiber.context, enter, 0);
    }
    const auto ended = [] { return std::all_of(fibers.begin(), fibers.end(), [](const Fiber& fiber) { return fiber.ended; }); };
    while (error.empty() && !ended()) {
        const bool first = laziness == 0 || (laziness == 1 && sometimes());
        if (first && run_operation()) continue;
        if (run_thread() || run_operation()) continue;
        for (Fiber& fiber : fibers) {
            if (!fiber.ended && error.empty()) error = "deadlock: thread " + std::to_string(&fiber - fibers.data()) + " waits for ever";
        }
    }
    if (error.empty() && !queues.empty()) error = "a block ended before its " + queues.begin()->first;
}

// What the tensor cores and a block's end ask of each other; set by the stand-ins.
inline std::function<void()> begin_block = [] {}, end_block = [] {};

template <typename Body>
void launch(int blocks, int threads, Body of_thread) {
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks && error.empty(); blockIdx.x++) {
        body = of_thread;
        begin_block();
        run_block(threads);
        if (error.empty()) end_block();
    }
}

}  // namespace on_cpu

inline void __syncthreads() { on_cpu::meetings[0].meet(static_cast<int>(on_cpu::fibers.size())); }
inline void __syncwarp() { on_cpu::meet_warp(); }
