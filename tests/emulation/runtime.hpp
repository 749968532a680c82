// What the code of a side asks of the emulated machine: to run a grid, to let threads meet, to judge an access, to keep memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_on_cpu {

constexpr int LANES = 32;

// A line of the side's source.
struct Place {
    const char* file;
    int line;
};

struct Config {
    const char* kernel;
    dim3 grid, block;
    size_t shared;
};

// Work of a stream: done now, or kept while a graph is captured.
using Work = std::function<void()>;
void enqueue(Work work);
void begin_capture();
std::vector<Work> end_capture();
// What waits for the device, or allocates at once, cannot be part of a graph.
void forbid_capture();

// Runs `body(closure)`, a kernel with its arguments, which lie in `bytes` bytes, for every thread. A failure becomes the last error.
void run(const Config& config, void (*body)(const void*), const void* closure, size_t bytes);
int last_error(bool clear);
const char* message_of(int code);
void allow_dynamic_shared(size_t bytes);

// All threads of the block meet; how many of them brought a predicate that is not 0.
int block_barrier(int predicate, Place place);

// Which lanes have met, and what each of the 32 brought: all bits set for those that are not among them.
struct Meeting {
    unsigned lanes;
    uint64_t values[LANES];
};
// The lanes of `mask`, but for those whose threads have returned, meet at one operation.
const Meeting& meet(const char* operation, unsigned mask, uint64_t value, Place place);
unsigned lane();
void let_others_run();
void trap(Place place);

// An atomic access, which the compiler's hooks do not see, and a copy that no one judges.
void access_atomically(const void* address, size_t bytes);
void move_bytes(void* to, const void* from, size_t bytes);
// Whether the host's runtime may do it: where `address` lies in an array of the device, all of it must, and a const one is only read.
bool host_access(const void* address, size_t bytes, bool write);

// A copy that the thread may not rely on before it has waited for it, and that is therefore made no sooner.
void copy_later(void* to, const void* from, size_t bytes, size_t zeros);
void commit_copies();
void finish_copies(size_t groups_left);

// A pipeline of `stages` between threads of a block, known by where its state lies; `number` counts the stages that a thread passed.
void make_pipeline(const void* state, unsigned stages, unsigned members, unsigned producers);
void acquire_stage(const void* state, uint64_t number);
void commit_stage(const void* state, uint64_t number);
void wait_for_stage(const void* state, uint64_t number);
void release_stage(const void* state, uint64_t number);

// A __shared__ variable: placed when the first thread of a library comes to it, filled with ones for every block.
struct Shared {
    const char* name;
    size_t begin = 0, bytes = 0;
    uint64_t block = 0;
    constexpr explicit Shared(const char* name) : name(name) {}
    void* at(size_t size, size_t alignment);
    template <typename T>
    T& as(size_t alignment) {
        return *static_cast<T*>(at(sizeof(T), alignment));
    }
};
void* dynamic_shared(size_t alignment);

void* allocate(size_t bytes, const char* name, bool of_host);
bool release(void* address);

}  // namespace cuda_on_cpu
