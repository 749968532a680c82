// What the code of a side asks of the emulated machine: run a block's threads as fibers, meet at a barrier, judge every access.
#pragma once
#include <cstddef>
#include <cstdint>

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

struct Place {
    const char* file;
    int line;
};

struct Config {
    const char* kernel;
    dim3 grid, block;
    size_t shared;
};

// A kernel with its arguments, which lie in `bytes` bytes at `closure`, for every thread of the grid. Failures become the last error.
void run(const Config& config, void (*body)(const void*), const void* closure, size_t bytes);

// All threads of the block meet; how many of them brought a predicate that is not 0.
int block_barrier(int predicate, Place place);

// Which lanes have met, and what each of the 32 brought: all bits set for those that are not among them.
struct Meeting {
    unsigned lanes;
    uint64_t values[LANES];
};
// The lanes of `mask`, but for those whose threads have returned, meet at one operation.
const Meeting& meet(const char* operation, unsigned mask, uint64_t value, Place place);

// An access that the compiler does not see: `atomic` if it is no race with another atomic access.
void access(const void* address, size_t bytes, bool write, bool atomic);
// A copy that no one judges.
void move_bytes(void* to, const void* from, size_t bytes);
// An access of the host's runtime, such as cudaMemset: must be inside, where it begins in an array of the device.
bool host_access(const void* address, size_t bytes, bool write);

// A block-wide variable: where it lies, filled with ones for every new block.
struct Shared {
    const char* name;
    size_t begin = 0, bytes = 0;
    uint64_t block = 0;
    constexpr explicit Shared(const char* name) : name(name) {}
    void* at(size_t bytes, size_t alignment);
    template <typename T>
    T& as(size_t alignment = alignof(T)) {
        return *static_cast<T*>(at(sizeof(T), alignment));
    }
};
void* dynamic_shared(size_t alignment);

void let_others_run();
unsigned lane();
void trap(Place place);

// A copy that the thread may not rely on before it waits for it, and that is therefore made no sooner.
void copy_later(void* to, const void* from, size_t bytes, size_t zeros);
void commit_copies();
void finish_copies(size_t groups_left);

void* allocate(size_t bytes, const char* name, bool of_host);
bool release(void* address);

void allow_dynamic_shared(size_t bytes);
int last_error(bool clear);
void set_error(int code);
const char* message_of(int code);

}  // namespace cuda_on_cpu
