// The judge of every access: where it goes, whether it may, and, in shared memory, whether a barrier keeps it from those of other threads.
#include "machine.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace cuda_on_cpu {

uint64_t atomics;

namespace {

constexpr size_t ARENA = 1 << 20;  // all shared variables of a library, with room between them
constexpr size_t BETWEEN = 128;    // bytes that nothing may touch
constexpr size_t DYNAMIC_BEGIN = 1024;

// Who touched a byte of shared memory last, at which code, in which intervals between barriers.
struct Touch {
    uint32_t interval, warp_interval, code;
    uint16_t thread;
    bool atomic;
};
struct Cell {
    Touch write, read, other_read;  // two readers: whoever writes differs from one of them
    const Shared* owner;
};

// An array of the device: bound by the harness, or allocated by the side.
struct Region {
    const char *begin, *end;
    bool writable;
    std::string name;
    bool allocated, of_host;
};

// A copy to shared memory that its thread has not waited for.
struct Copy {
    void* to;
    const void* from;
    size_t bytes, zeros, group;
    uint32_t code;
};
struct Copies {
    size_t groups;
    std::vector<Copy> pending;
};

char* arena;
Cell* cells;
size_t arena_top = DYNAMIC_BEGIN + MOST_SHARED;
size_t static_shared;
Shared dynamic("dynamic shared memory");
uint64_t accesses;
std::vector<Region> regions;
size_t last_region;
Copies copies[MOST_THREADS];

// The library itself, with its __constant__ and __device__ variables.
extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

uint32_t code_of(const void* return_address) { return uint32_t(static_cast<const char*>(return_address) - __ehdr_start - 1); }
#define CALLER code_of(__builtin_return_address(0))
// Whoever reads it makes a line of the source of it.
std::string at(uint32_t code) { return text("at <code 0x%x>", code); }

const char* verb(bool write) { return write ? "writes" : "reads"; }

const Region* region_of(const char* address) {
    auto holds = [=](const Region& region) { return address >= region.begin && address < region.end; };
    if (last_region < regions.size() && holds(regions[last_region])) return &regions[last_region];
    for (size_t i = 0; i < regions.size(); i++)
        if (holds(regions[i])) return &regions[last_region = i];
    return nullptr;
}

// Where an access that is in no array, or not all in one, was probably meant to go.
std::string near(const char* address, size_t bytes) {
    const Region* nearest = nullptr;
    size_t gap = 1 << 20;
    for (const Region& region : regions) {
        const size_t away = size_t(address < region.begin ? region.begin - address : address < region.end ? 0 : address - region.end);
        if (away < gap) nearest = &region, gap = away;
    }
    const std::string what = text("%zu bytes ", bytes);
    if (!nearest) return what + (address < reinterpret_cast<char*>(4096) ? "at a null pointer" : "that are in no array");
    return what + text("at byte %td of %s, which has %td", address - nearest->begin, nearest->name.c_str(), nearest->end - nearest->begin);
}

// Whether nothing orders an earlier access before one that the running thread makes now.
bool unordered(const Touch& touch) {
    if (touch.interval != interval || touch.thread == running.rank) return false;
    const size_t warp = warp_of(running.rank);
    return warp_of(touch.thread) != warp || touch.warp_interval == warp_interval[warp];
}

[[noreturn]] void race(const Cell& cell, bool write, uint32_t code, const Touch& other, bool wrote) {
    fail(text("%s %s ", verb(write), cell.owner->name) + at(code) + ", which thread " + text(index_of(other.thread)) +
         (wrote ? " wrote " : " read ") + at(other.code) + ", with no barrier in between");
}

void shared_access(const char* address, size_t bytes, bool write, bool atomic, uint32_t code) {
    const size_t begin = size_t(address - arena);
    const Touch touch{interval, warp_interval[warp_of(running.rank)], code, uint16_t(running.rank), atomic};
    for (size_t i = begin; i < begin + bytes; i++) {
        if (i < DYNAMIC_BEGIN + MOST_SHARED) cells[i].owner = i >= DYNAMIC_BEGIN && i < DYNAMIC_BEGIN + config.shared ? &dynamic : nullptr;
        if (!cells[i].owner || cells[i].owner->block != block_serial)
            fail(text("%s %zu bytes of shared memory that no variable of the block has, ", verb(write), bytes) + at(code));
        Cell& cell = cells[i];
        if (unordered(cell.write) && !(atomic && cell.write.atomic)) race(cell, write, code, cell.write, true);
        if (write) {
            for (const Touch& read : {cell.read, cell.other_read})
                if (unordered(read)) race(cell, write, code, read, false);
            cell.write = touch;
        } else {
            (unordered(cell.read) ? cell.other_read : cell.read) = touch;
        }
    }
}

void host_judge(const char* address, uint32_t code) {
    const Region* region = regions.empty() ? nullptr : region_of(address);
    if (region && !region->of_host) record("the host itself touches " + region->name + ", memory of the device, " + at(code));
}

void judge(const void* pointer, size_t bytes, bool write, bool atomic, uint32_t code) {
    const char* address = static_cast<const char*>(pointer);
    if (!running.kernel) return host_judge(address, code);
    if (size_t(address - running.stack) < STACK) return;
    if (++accesses > MOST_ACCESSES) fail("is in a launch of too many accesses: it waits for another block, or the shape is too large");
    if (++running.accesses > ACCESSES_IN_A_TURN) let_others_run();
    if (size_t(address - arena) < ARENA - BETWEEN) return shared_access(address, bytes, write, atomic, code);
    if (address >= __ehdr_start && address < _end) return;
    if (address >= closure_begin && address + bytes <= closure_end && !write) return;
    const Region* region = region_of(address);
    if (!region || address + bytes > region->end) fail(text("%s ", verb(write)) + near(address, bytes) + ", " + at(code));
    if (write && !region->writable) fail("writes " + region->name + ", which is const, " + at(code));
}

template <typename T>
T* map(size_t count) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* made = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED) abort();
    return static_cast<T*>(made);
}

}  // namespace

void begin_launch_memory() {
    if (!arena) {
        arena = map<char>(ARENA);
        cells = map<Cell>(ARENA);
    }
    accesses = 0;
}

void begin_block_memory() {
    static_shared = 0;
    dynamic.block = block_serial;
    memset(arena + DYNAMIC_BEGIN, 0xFF, config.shared);
    for (Copies& each : copies) {
        each.groups = 0;
        each.pending.clear();
    }
}

void forget_arrays() {
    std::vector<Region> kept;
    for (const Region& region : regions)
        if (region.allocated) kept.push_back(region);
    regions.swap(kept);
}

void access_atomically(const void* address, size_t bytes) {
    atomics++;
    judge(address, bytes, true, true, CALLER);
}

void move_bytes(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

bool host_access(const void* pointer, size_t bytes, bool write) {
    const char* address = static_cast<const char*>(pointer);
    const Region* region = region_of(address);
    const bool may = !region || (address + bytes <= region->end && (region->writable || !write));
    if (!may) record(text("the host's runtime %s ", verb(write)) + near(address, bytes));
    return may;
}

void copy_later(void* to, const void* from, size_t bytes, size_t zeros) {
    judge(from, bytes - zeros, false, false, CALLER);
    Copies& mine = copies[running.rank];
    mine.pending.push_back({to, from, bytes, zeros, mine.groups, CALLER});
}

void commit_copies() { copies[running.rank].groups++; }

void finish_copies(size_t groups_left) {
    Copies& mine = copies[running.rank];
    std::vector<Copy> later;
    for (const Copy& copy : mine.pending) {
        if (copy.group + groups_left >= mine.groups) {
            later.push_back(copy);
            continue;
        }
        judge(copy.to, copy.bytes, true, false, copy.code);
        memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
        memset(static_cast<char*>(copy.to) + copy.bytes - copy.zeros, 0, copy.zeros);
    }
    mine.pending.swap(later);
}

void* Shared::at(size_t size, size_t alignment) {
    if (!bytes) {
        // Aligned as asked and no better: what relies on more than the language promises fails here first.
        const size_t free = (arena_top + BETWEEN + 2 * alignment - 1) / (2 * alignment) * (2 * alignment) + alignment;
        if (free + size + BETWEEN > ARENA) fail("needs more shared variables than are emulated");
        begin = free;
        bytes = size;
        arena_top = begin + size;
        for (size_t i = begin; i < begin + size; i++) cells[i].owner = this;
    }
    if (block != block_serial) {
        block = block_serial;
        memset(arena + begin, 0xFF, size);
        static_shared += size;
        if (static_shared > MOST_STATIC_SHARED)
            fail(text("is in a block of more than %zu bytes of static shared memory", MOST_STATIC_SHARED));
        if (static_shared + config.shared > MOST_SHARED) fail(text("is in a block of more than %zu bytes of shared memory", MOST_SHARED));
    }
    return arena + begin;
}

void* dynamic_shared(size_t alignment) {
    if (alignment > DYNAMIC_BEGIN)
        fail(text("asks for shared memory aligned to %zu bytes; expected at most %zu", alignment, DYNAMIC_BEGIN));
    return arena + DYNAMIC_BEGIN;
}

void* allocate(size_t bytes, const char* name, bool of_host) {
    char* made = static_cast<char*>(aligned_alloc(512, (bytes + 511) / 512 * 512));
    if (!made) abort();
    memset(made, 0xFF, bytes);
    regions.push_back({made, made + bytes, true, name, true, of_host});
    return made;
}

bool release(void* address) {
    for (size_t i = 0; i < regions.size(); i++)
        if (regions[i].begin == address && regions[i].allocated) {
            regions.erase(regions.begin() + long(i));
            free(address);
            return true;
        }
    return !address;
}

extern "C" {

// Lets kernels read, and write if `writable`, the `bytes` at `begin`.
__attribute__((visibility("default"))) void emulation_allow(const char* name, const char* begin, size_t bytes, bool writable) {
    regions.push_back({begin, begin + bytes, writable, name, false, false});
}

// -fsanitize=thread calls these at loads and stores. They are all there is of it: its own runtime is not linked.
#define HOOK(kind, size, write) \
    void __tsan_##kind##size(void* address) { judge(address, size, write, false, CALLER); }
#define HOOKS(kind, write) HOOK(kind, 1, write) HOOK(kind, 2, write) HOOK(kind, 4, write) HOOK(kind, 8, write) HOOK(kind, 16, write)
HOOKS(read, false)
HOOKS(write, true)
HOOKS(unaligned_read, false)
HOOKS(unaligned_write, true)
void __tsan_read_range(void* address, size_t size) { judge(address, size, false, false, CALLER); }
void __tsan_write_range(void* address, size_t size) { judge(address, size, true, false, CALLER); }
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
uint8_t __tsan_atomic8_load(const volatile uint8_t* guard, int) { return *guard; }  // whether a function's static was made

// -fsanitize=undefined calls these with a description that begins with the place.
struct Undefined {
    const char* file;
    uint32_t line, column;
};
#define UNDEFINED(name, what) \
    void __ubsan_handle_##name(const Undefined* found) { undefined(what, {found->file, int(found->line)}); }
static void undefined(const char* what, Place place) {
    if (running.kernel) fail(std::string(what) + " at " + text(place));
    record(std::string("the host ") + what + " at " + text(place));
}
UNDEFINED(type_mismatch_v1, "uses a null pointer, or one that is not aligned for its type,")
UNDEFINED(out_of_bounds, "indexes an array out of its bounds")
UNDEFINED(shift_out_of_bounds, "shifts by a negative number of bits, or by all of them or more,")
UNDEFINED(add_overflow, "overflows a signed integer in an addition")
UNDEFINED(sub_overflow, "overflows a signed integer in a subtraction")
UNDEFINED(mul_overflow, "overflows a signed integer in a multiplication")
UNDEFINED(negate_overflow, "overflows a signed integer in a negation")
UNDEFINED(divrem_overflow, "divides an integer by zero, or overflows it,")
UNDEFINED(missing_return, "leaves a function without the value that it returns")

// What assert() calls.
void __assert_fail(const char* what, const char* file, unsigned line, const char*) {
    if (!running.kernel) abort();
    fail(std::string("fails its assertion `") + what + "' at " + text(Place{file, int(line)}));
}

}  // extern "C"
}  // namespace cuda_on_cpu
