// A cluster of blocks at a time on a CPU: threads are fibers that run until they wait; copies and products run late, early, or in between.
//
// What hardware may do at any time is an operation in a queue of the block whose shared memory it touches; operations of a queue run in its
// order, queues in any. A seed decides what runs next, and how lazy the queues are. A wait named in `skipped`, as file:line, does not wait.
// What a program must not do is an error. Shared memory is a block's from its first thread's start to its last one's end, else it is NaN.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <array>
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
#define __noinline__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __restrict__

// Where a call stands, as its last and defaulted arguments.
#define ON_CPU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct Index {
    int x = 0;
};
inline Index threadIdx, blockIdx, gridDim;

namespace on_cpu {

constexpr size_t SHARED = 227 << 10, STACK = 128 << 10;
constexpr int MOST_BLOCKS = 8;  // in a cluster
alignas(1024) inline unsigned char memories[MOST_BLOCKS][SHARED];
inline unsigned char* shared_memory = memories[0];  // of the block that runs
inline std::string error, skipped;
inline std::mt19937 chance;
inline int laziness = 0;  // 0: operations run as soon as anything may, 1: by chance, 2: when no thread can go on
inline int multiprocessors = 1;
inline uint32_t seed = 0;

// Threads that wait to be woken: nobody asks them meanwhile whether they can go on.
struct Waiting {
    std::vector<std::pair<int, int>> threads;  // rank of the block, number in it
    void sleep();
    void wake();
};
// Threads of a group that meet: a barrier of `count` threads.
struct Meeting {
    int arrived = 0;
    Waiting waiting;
    void meet(int count);
};
struct Fiber {
    ucontext_t context;
    std::function<bool()> ready = [] { return true; };
    bool ended = false, at_cluster_barrier = false;
};
struct Block {
    int rank;
    std::vector<Fiber> fibers;
    std::vector<int> awake;  // neither asleep nor ended
    std::map<std::string, std::deque<std::function<void()>>> queues;
    std::map<int, Meeting> meetings;
    int threads_left;
    bool started = false;
    bool ended() const { return threads_left == 0; }
};
inline std::deque<Block> cluster;
inline Block* block;  // that runs
inline int first_block;
inline std::vector<std::unique_ptr<char[]>> stacks;
inline ucontext_t scheduler;
inline std::function<void()> body;

inline void enter_block(Block& entered) {
    block = &entered;
    blockIdx.x = first_block + entered.rank;
    shared_memory = memories[entered.rank];
}
inline Fiber& fiber() { return block->fibers[threadIdx.x]; }
inline int thread_of_cluster() { return block->rank * 1024 + threadIdx.x; }

inline void leave() { swapcontext(&fiber().context, &scheduler); }
inline void note(const std::string& what) {
    if (error.empty()) error = what;
}
inline void fail(const std::string& what) {
    note(what);
    leave();
}
inline void require(bool holds, const std::string& what) {
    if (!holds) fail(what);
}
inline void wait(std::function<bool()> ready) {
    fiber().ready = std::move(ready);
    leave();
}
inline bool sometimes() { return chance() % 4 == 0; }
inline void pause() {
    if (sometimes()) wait([] { return true; });
}
inline bool skips(const char* file, int line) {
    if (skipped.empty()) return false;
    const std::string path(file);
    return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) == skipped;
}

inline void lie_down() {
    auto& awake = block->awake;
    *std::find(awake.begin(), awake.end(), threadIdx.x) = awake.back();
    awake.pop_back();
    leave();
}
inline void Waiting::sleep() {
    threads.emplace_back(block->rank, threadIdx.x);
    fiber().ready = [] { return true; };
    lie_down();
}
inline void Waiting::wake() {
    for (auto [rank, thread] : threads) cluster[rank].awake.push_back(thread);
    threads.clear();
}
inline void Meeting::meet(int count) {
    if (++arrived < count) return waiting.sleep();
    arrived = 0;
    waiting.wake();
    wait([] { return true; });
}
// What is .sync.aligned: all lanes of a warp have come so far.
inline void meet_warp() { block->meetings[100 + threadIdx.x / 32].meet(32); }

// The barrier of the cluster: complete when each of its threads has come or ended.
inline int cluster_missing, cluster_times;
inline Waiting cluster_waiting;
inline void come_to_cluster_barrier() {
    if (--cluster_missing) return;
    cluster_times++;
    cluster_waiting.wake();
    for (Block& each : cluster) {
        cluster_missing += each.threads_left;
        for (Fiber& one : each.fibers) one.at_cluster_barrier = false;
    }
}
inline int arrive_at_cluster_barrier() {
    require(!fiber().at_cluster_barrier, "a thread comes twice to one barrier of the cluster");
    fiber().at_cluster_barrier = true;
    const int now = cluster_times;
    come_to_cluster_barrier();
    return now;
}
inline void wait_at_cluster_barrier(int since) {
    if (cluster_times == since) return cluster_waiting.sleep();
    pause();
}

// What the hardware does at a time of its own, to the shared memory of this block or of block `rank`.
inline void later(const std::string& queue, std::function<void()> operation, int rank = block->rank) {
    require(!cluster[rank].ended(), "something is asked for in a block that has ended: " + queue);
    cluster[rank].queues[queue].push_back(std::move(operation));
}
// What lies in block `rank` where `pointer` points to in this one.
template <typename T>
T* in_block(T* pointer, int rank) {
    const auto* at = reinterpret_cast<const unsigned char*>(pointer);
    require(at >= shared_memory && at < shared_memory + SHARED, "an address outside shared memory");
    require(rank >= 0 && rank < int(cluster.size()), "a block that the cluster does not have");
    require(!cluster[rank].ended(), "a block is reached for that has ended");
    return reinterpret_cast<T*>(memories[rank] + (at - shared_memory));
}
// Where a __shared__ variable lies: from the end, since dynamic shared memory lies at the beginning.
inline size_t place(size_t bytes, size_t alignment) {
    static size_t begin = SHARED;
    return begin = (begin - bytes) / alignment * alignment;
}

inline void poison(unsigned char* memory) {
    for (size_t i = 0; i < SHARED; i += 4) std::memcpy(memory + i, "\xff\x7f\xff\x7f", 4);  // NaN in bf16 and in fp32
}
inline bool is_poison(const unsigned char* memory) {
    return !std::memcmp(memory, "\xff\x7f", 2) && !std::memcmp(memory, memory + 2, SHARED - 2);
}
inline void enter() {
    body();
    Fiber& own = fiber();
    own.ended = true;
    block->threads_left--;
    if (!own.at_cluster_barrier) come_to_cluster_barrier();
    if (block->ended()) {
        if (!block->queues.empty()) note("a block ended before its " + block->queues.begin()->first);
        poison(shared_memory);
    }
    lie_down();
}

// By odd seeds a queue is as slow as its name says: one may be passed over until nothing else is left.
inline bool run_operation() {
    std::vector<std::pair<int, std::string>> names;
    for (Block& each : cluster) {
        for (auto& [name, queue] : each.queues) names.emplace_back(each.rank, name);
    }
    if (names.empty()) return false;
    const auto slowness = [](auto& of) { return std::hash<std::string>{}(of.second + std::to_string(of.first) + std::to_string(seed)); };
    auto [rank, name] = names[chance() % names.size()];
    if (seed % 2) {
        std::tie(rank, name) = *std::min_element(names.begin(), names.end(), [&](auto& x, auto& y) { return slowness(x) < slowness(y); });
    }
    enter_block(cluster[rank]);
    auto operation = std::move(block->queues[name].front());
    block->queues[name].pop_front();
    if (block->queues[name].empty()) block->queues.erase(name);
    operation();
    return true;
}

// By odd seeds one block is slower than its peers: its threads run when those of no other can.
inline bool run_thread() {
    const size_t blocks = cluster.size(), next = seed % 2 ? seed / 2 + 1 : chance();
    for (size_t i = 0; i < blocks; i++) {
        Block& its = cluster[(next + i) % blocks];
        const size_t turn = chance(), awake = its.awake.size();
        for (size_t j = 0; j < awake; j++) {
            const int thread = its.awake[(turn + j) % awake];
            if (!its.fibers[thread].ready()) continue;
            enter_block(its);
            threadIdx.x = thread;
            if (!its.started) poison(shared_memory);
            its.started = true;
            swapcontext(&scheduler, &its.fibers[thread].context);
            return true;
        }
    }
    return false;
}

inline void run_cluster(int blocks, int threads) {
    cluster.clear();
    cluster_waiting.threads.clear();
    cluster_missing = blocks * threads;
    while (int(stacks.size()) < blocks * threads) stacks.emplace_back(new char[STACK]);
    for (int rank = 0; rank < blocks; rank++) {
        Block& made = cluster.emplace_back();
        made.rank = rank;
        made.threads_left = threads;
        made.fibers.resize(threads);
        for (int thread = 0; thread < threads; thread++) {
            made.awake.push_back(thread);
            ucontext_t& context = made.fibers[thread].context;
            getcontext(&context);
            context.uc_stack.ss_sp = stacks[rank * threads + thread].get();
            context.uc_stack.ss_size = STACK;
            makecontext(&context, enter, 0);
        }
    }
    const auto ended = [] { return std::all_of(cluster.begin(), cluster.end(), [](const Block& each) { return each.ended(); }); };
    while (error.empty() && !ended()) {
        const bool first = laziness == 0 || (laziness == 1 && sometimes());
        if (first && run_operation()) continue;
        if (run_thread() || run_operation()) continue;
        for (Block& each : cluster) {
            for (Fiber& one : each.fibers) {
                if (!one.ended) note("deadlock: thread " + std::to_string(&one - each.fibers.data()) + " waits for ever");
            }
        }
    }
    for (int rank = 0; rank < blocks; rank++) {
        if (!is_poison(memories[rank])) note("a block was written to after its end");
    }
}

// What the tensor cores and a cluster's end ask of each other; set by the stand-ins.
inline std::function<void()> begin_cluster = [] {}, end_cluster = [] {};

template <typename Body>
void launch(int blocks, int threads, Body of_thread, int blocks_in_cluster = 1) {
    gridDim.x = blocks;
    body = of_thread;
    if (blocks % blocks_in_cluster || blocks_in_cluster > MOST_BLOCKS) note("the grid is no whole number of clusters");
    for (first_block = 0; first_block < blocks && error.empty(); first_block += blocks_in_cluster) {
        begin_cluster();
        run_cluster(blocks_in_cluster, threads);
        if (error.empty()) end_cluster();
    }
}

}  // namespace on_cpu

inline void __syncthreads(ON_CPU_HERE) {
    if (!on_cpu::skips(file, line)) on_cpu::block->meetings[0].meet(static_cast<int>(on_cpu::block->fibers.size()));
}
inline void __syncwarp() { on_cpu::meet_warp(); }

// Lanes exchange values: each leaves its own, then takes another's. All 32 take part.
namespace on_cpu {
inline std::map<int, std::array<uint64_t, 32>> left_by_lanes;
template <typename T>
T take_from(int lane, T value) {
    auto& left = left_by_lanes[thread_of_cluster() / 32];
    std::memcpy(&left[threadIdx.x % 32], &value, sizeof value);
    meet_warp();
    std::memcpy(&value, &left[lane], sizeof value);
    meet_warp();
    return value;
}
}  // namespace on_cpu
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
    on_cpu::require(mask == ~0u, "a shuffle that not all lanes take part in");
    return on_cpu::take_from(lane, value);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
    on_cpu::require(mask == ~0u, "a shuffle that not all lanes take part in");
    return on_cpu::take_from(threadIdx.x % 32 ^ lanes, value);
}
inline float __expf(float x) { return std::exp2(x * 1.44269504f); }
