// Pipelines between the threads of a block: who has filled and emptied which stage, kept outside of the memory that is judged.
#include "machine.hpp"

#include <map>

namespace cuda_on_cpu {

namespace {

constexpr unsigned MOST_TURNS = 1 << 16;  // of all other threads, before a wait counts as endless

struct Counts {
    uint64_t block = 0;
    unsigned producers = 0, consumers = 0;
    std::vector<uint64_t> produced, consumed;  // arrivals at each stage
};
std::map<const void*, Counts> pipelines;

void wait_until(const uint64_t& arrived, uint64_t expected, const char* verb) {
    for (unsigned turns = 0; arrived < expected; turns++) {
        if (turns == MOST_TURNS) fail(text("waits for a stage of a pipeline that nobody %s", verb));
        let_others_run();
    }
    // All that anybody did before counts as ordered before what follows: fewer races are seen than with the pipeline's own order.
    interval++;
}

}  // namespace

void make_pipeline(const void* state, unsigned stages, unsigned members, unsigned producers) {
    Counts& counts = pipelines[state];
    if (counts.block == block_serial) return;  // another member was here first
    counts = {block_serial, producers, members - producers, std::vector<uint64_t>(stages), std::vector<uint64_t>(stages)};
}

void acquire_stage(const void* state, uint64_t number) {
    Counts& counts = pipelines[state];
    const size_t stages = counts.consumed.size();
    wait_until(counts.consumed[number % stages], number / stages * counts.consumers, "empties");
}

void commit_stage(const void* state, uint64_t number) {
    commit_copies();
    finish_copies(0);
    Counts& counts = pipelines[state];
    counts.produced[number % counts.produced.size()]++;
}

void wait_for_stage(const void* state, uint64_t number) {
    Counts& counts = pipelines[state];
    const size_t stages = counts.produced.size();
    wait_until(counts.produced[number % stages], (number / stages + 1) * counts.producers, "fills");
}

void release_stage(const void* state, uint64_t number) {
    Counts& counts = pipelines[state];
    counts.consumed[number % counts.consumed.size()]++;
}

}  // namespace cuda_on_cpu
