// The emulated machine: fibers that a barrier switches between, and a judge of every access, fed by the hooks that -fsanitize inserts.
#include "runtime.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_on_cpu {
namespace {

constexpr size_t STACK = 256 << 10;
constexpr size_t MOST_THREADS = 1024;
constexpr size_t ARENA = 1 << 20;  // all shared variables of a library, with room between them
constexpr size_t BETWEEN = 128;    // bytes that nothing may touch
constexpr size_t MOST_STATIC_SHARED = 48 << 10;
constexpr size_t MOST_SHARED = 227 << 10;
constexpr uint64_t MOST_ACCESSES = 1ull << 29;    // in a launch: some seconds
constexpr uint64_t ACCESSES_IN_A_TURN = 1 << 16;  // then another thread gets one, so that one may wait for what another writes
constexpr int INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, LAUNCH_FAILURE = 719;

enum class Order { forward, reversed, shuffled };
enum class State { ready, at_barrier, in_warp, done };

struct Copy {
    void* to;
    const void* from;
    size_t bytes, zeros, group;
    uint32_t code;
};

struct Thread {
    jmp_buf context;
    char* stack;
    bool started = false;
    State state = State::done;
    uint3 index;
    Place place;
    const char* operation;
    unsigned mask;
    uint64_t value;
    Meeting met;
    size_t groups = 0;
    std::vector<Copy> copies;
};

// Who touched a byte of shared memory last, and when: in which interval between barriers of the block and of its warp.
struct Touch {
    uint32_t interval, warp_interval, code;
    uint16_t thread;
    bool atomic;
};
struct Cell {
    Touch write, read, other_read;  // two readers: whoever writes differs from one of them
    const Shared* owner;
};

struct Region {
    const char *begin, *end;
    bool writable;
    std::string name;
    bool allocated, of_host;  // by the side itself; also for the host to touch
};

Thread threads[MOST_THREADS];
size_t thread_count;
Thread* current;
jmp_buf scheduler;
void (*kernel_body)(const void*);
const char *closure_begin, *closure_end;
Config config;
Order order = Order::forward;
uint64_t random_state;

uint64_t block_serial;
uint32_t interval;
uint32_t warp_interval[MOST_THREADS / LANES];
int predicates;
uint64_t accesses, turn;
uint64_t atomics;

char* arena;
Cell* cells;
size_t arena_top, static_shared, dynamic_begin;
Shared dynamic("dynamic shared memory");
size_t dynamic_allowed = MOST_STATIC_SHARED;

std::vector<Region> regions;
size_t last_region;

int error;
std::string message;

extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) {
    char line[1000];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

std::string text(uint3 v) { return text("(%u, %u, %u)", v.x, v.y, v.z); }
std::string text(Place place) { return text("%s:%d", place.file, place.line); }
// Whoever reads it turns the offset into a line.
std::string code_at(uint32_t offset) { return text("<code 0x%x>", offset); }
uint32_t code_of(const void* return_address) { return uint32_t(static_cast<const char*>(return_address) - __ehdr_start - 1); }
#define CALLER code_of(__builtin_return_address(0))

void suspend() {
    if (_setjmp(current->context) == 0) _longjmp(scheduler, 1);
}

void record(const std::string& what) {
    if (message.empty()) message = text("kernel %s: ", config.kernel) + what;
    error = LAUNCH_FAILURE;
}

[[noreturn]] void fail(const std::string& what) {
    record(text("block %s, thread %s ", text(blockIdx).c_str(), text(threadIdx).c_str()) + what);
    _longjmp(scheduler, 2);
}

void fiber() {
    for (;;) {
        kernel_body(closure_begin);
        commit_copies();
        finish_copies(0);
        current->state = State::done;
        suspend();
    }
}

// Whether the thread came back of itself.
__attribute__((noinline)) bool resume(Thread& thread) {
    current = &thread;
    threadIdx = thread.index;
    turn = 0;
    int returned = _setjmp(scheduler);
    if (returned == 0) {
        if (thread.started) _longjmp(thread.context, 1);
        thread.started = true;
        static ucontext_t start;
        getcontext(&start);
        start.uc_stack.ss_sp = thread.stack;
        start.uc_stack.ss_size = STACK;
        makecontext(&start, fiber, 0);
        setcontext(&start);
    }
    current = nullptr;
    return returned == 1;
}

size_t rank_of(const Thread& thread) { return size_t(&thread - threads); }
size_t warp_of(size_t rank) { return rank / LANES; }

unsigned alive_in(size_t warp) {
    unsigned alive = 0;
    for (size_t rank = warp * LANES; rank < thread_count && rank < (warp + 1) * LANES; rank++)
        if (threads[rank].state != State::done) alive |= 1u << rank % LANES;
    return alive;
}

// Lets the lanes that `thread` waits for go on with it, if all of them are there.
bool meets(Thread& thread) {
    const size_t warp = warp_of(rank_of(thread));
    const unsigned group = thread.mask & alive_in(warp);
    Thread* lanes = &threads[warp * LANES];
    for (int i = 0; i < LANES; i++)
        if (group >> i & 1 && (lanes[i].state != State::in_warp || lanes[i].mask != thread.mask || lanes[i].operation != thread.operation))
            return false;
    Meeting met{group, {}};
    for (int i = 0; i < LANES; i++) met.values[i] = group >> i & 1 ? lanes[i].value : ~0ull;
    for (int i = 0; i < LANES; i++)
        if (group >> i & 1) {
            lanes[i].met = met;
            lanes[i].state = State::ready;
        }
    if (!strcmp(thread.operation, "__syncwarp")) warp_interval[warp]++;
    return true;
}

std::string where(const Thread& thread) {
    std::string who = "thread " + text(thread.index);
    if (thread.state == State::done) return who + " has returned";
    if (thread.state == State::at_barrier) return who + " is at the barrier of " + text(thread.place);
    return who + " is at " + thread.operation + " of " + text(thread.place) + text(" for lanes 0x%08x", thread.mask);
}

// No thread can run: some warps' lanes have met, or all threads are at one barrier, or they wait for ever.
bool release_waiting() {
    bool released = false, barrier = true;
    for (size_t i = 0; i < thread_count; i++)
        if (threads[i].state == State::in_warp) released |= meets(threads[i]);
    if (released) return true;
    Thread& first = threads[0];
    predicates = 0;
    for (size_t i = 0; i < thread_count; i++) {
        barrier &= threads[i].state == State::at_barrier && threads[i].place.line == first.place.line;
        barrier = barrier && !strcmp(threads[i].place.file, first.place.file);
        predicates += threads[i].state == State::at_barrier && threads[i].value;
    }
    if (barrier) {
        interval++;
        for (size_t i = 0; i < thread_count; i++) threads[i].state = State::ready;
        return true;
    }
    const Thread* other = nullptr;
    const Thread* waiting = nullptr;
    for (size_t i = 0; i < thread_count; i++)
        if (threads[i].state != State::done && (!waiting || threads[i].state == State::in_warp)) waiting = &threads[i];
    for (size_t i = 0; i < thread_count; i++) {
        const Thread& thread = threads[i];
        const bool awaited =
            waiting->state == State::at_barrier || (warp_of(i) == warp_of(rank_of(*waiting)) && waiting->mask >> i % LANES & 1);
        const bool differs = thread.state != waiting->state || thread.place.line != waiting->place.line || thread.mask != waiting->mask;
        if (awaited && differs && !other) other = &thread;
    }
    record("block " + text(blockIdx) + " waits for ever: " + where(*waiting) + (other ? ", " + where(*other) : ""));
    return false;
}

uint64_t random_below(uint64_t n) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % n;
}

bool run_block() {
    block_serial++;
    interval++;
    static_shared = 0;
    memset(arena + dynamic_begin, 0xFF, config.shared);
    for (size_t i = 0; i < thread_count; i++) {
        threads[i].state = State::ready;
        threads[i].groups = 0;
    }
    std::vector<uint16_t> turns(thread_count);
    for (;;) {
        for (size_t i = 0; i < thread_count; i++) turns[i] = uint16_t(order == Order::reversed ? thread_count - 1 - i : i);
        if (order == Order::shuffled)
            for (size_t i = thread_count; i > 1; i--) std::swap(turns[i - 1], turns[random_below(i)]);
        bool ran = false, waiting = false;
        for (uint16_t i : turns) {
            if (threads[i].state == State::ready) {
                ran = true;
                if (!resume(threads[i])) return false;
            }
            waiting |= threads[i].state != State::done;
        }
        if (!waiting) return true;
        if (!ran && !release_waiting()) return false;
    }
}

bool make_ready() {
    if (!arena) {
        auto map = [](size_t bytes) {
            void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (made == MAP_FAILED) abort();
            return static_cast<char*>(made);
        };
        arena = map(ARENA);
        cells = reinterpret_cast<Cell*>(map(ARENA * sizeof(Cell)));
        char* stacks = map(MOST_THREADS * STACK);
        for (size_t i = 0; i < MOST_THREADS; i++) threads[i].stack = stacks + i * STACK;
        arena_top = dynamic_begin = 1024;
        arena_top += MOST_SHARED;
    }
    const dim3 &grid = config.grid, &block = config.block;
    thread_count = size_t(block.x) * block.y * block.z;
    const bool shaped = thread_count && thread_count <= MOST_THREADS && block.z <= 64 && grid.x && grid.y && grid.z &&
                        grid.x <= 0x7FFFFFFF && grid.y <= 65535 && grid.z <= 65535;
    if (!shaped) {
        error = INVALID_CONFIGURATION;
        message = text(
            "kernel %s: found grid %s of blocks %s; expected neither to be empty, at most 1024 threads a block and 65535 blocks "
            "along y and z",
            config.kernel, text(uint3(grid)).c_str(), text(uint3(block)).c_str());
    } else if (config.shared > dynamic_allowed) {
        error = INVALID_VALUE;
        message = text("kernel %s: found %zu bytes of dynamic shared memory; expected at most %zu, or cudaFuncSetAttribute to allow more",
                       config.kernel, config.shared, dynamic_allowed);
    }
    return !error;
}

const Region* region_of(const char* address) {
    if (last_region < regions.size() && address >= regions[last_region].begin && address < regions[last_region].end)
        return &regions[last_region];
    for (size_t i = 0; i < regions.size(); i++)
        if (address >= regions[i].begin && address < regions[i].end) {
            last_region = i;
            return &regions[i];
        }
    return nullptr;
}

std::string near(const char* address, size_t bytes) {
    const Region* nearest = nullptr;
    size_t gap = 0;
    for (const Region& region : regions) {
        const size_t away = address < region.begin ? size_t(region.begin - address)
                            : address < region.end ? 0
                                                   : size_t(address - region.end);
        if (!nearest || away < gap) nearest = &region, gap = away;
    }
    if (!nearest || gap > (1 << 20)) return address < reinterpret_cast<char*>(4096) ? "at a null pointer" : "in no array of this launch";
    const long long size = nearest->end - nearest->begin;
    return text("at byte %lld of %s, which has %lld", static_cast<long long>(address - nearest->begin), nearest->name.c_str(), size) +
           (gap ? "" : text(", with %zu bytes", bytes));
}

bool unordered(const Touch& touch) {
    const size_t me = rank_of(*current);
    if (touch.interval != interval || touch.thread == me) return false;
    return warp_of(touch.thread) != warp_of(me) || touch.warp_interval == warp_interval[warp_of(me)];
}

[[noreturn]] void race(const Cell& cell, const Touch& other, bool wrote, bool write, uint32_t code) {
    fail(text("%s %s at ", write ? "writes" : "reads", cell.owner->name) + code_at(code) + ", which thread " +
         text(threads[other.thread].index) + (wrote ? " wrote at " : " read at ") + code_at(other.code) + ", with no barrier in between");
}

void shared_access(const char* address, size_t bytes, bool write, bool atomic, uint32_t code) {
    const size_t begin = size_t(address - arena);
    const Touch touch{interval, warp_interval[warp_of(rank_of(*current))], code, uint16_t(rank_of(*current)), atomic};
    for (size_t i = begin; i < begin + bytes; i++) {
        const bool in_dynamic = i >= dynamic_begin && i < dynamic_begin + config.shared;
        if (i >= ARENA || !(in_dynamic || (cells[i].owner && cells[i].owner != &dynamic && cells[i].owner->block == block_serial)))
            fail(text("%s %zu bytes of shared memory that no variable of the block has, at ", write ? "writes" : "reads", bytes) +
                 code_at(code));
        Cell& cell = cells[i];
        if (in_dynamic) cell.owner = &dynamic;
        if (unordered(cell.write) && !(atomic && cell.write.atomic)) race(cell, cell.write, true, write, code);
        if (write) {
            for (const Touch* read : {&cell.read, &cell.other_read})
                if (unordered(*read)) race(cell, *read, false, write, code);
            cell.write = touch;
        } else {
            (unordered(cell.read) ? cell.other_read : cell.read) = touch;
        }
    }
}

inline void judge(const void* pointer, size_t bytes, bool write, bool atomic, uint32_t code) {
    const char* address = static_cast<const char*>(pointer);
    if (!current) {
        const Region* region = regions.empty() ? nullptr : region_of(address);
        if (region && !region->of_host) record("the host itself touches " + region->name + ", memory of the device, at " + code_at(code));
        return;
    }
    if (size_t(address - current->stack) < STACK) return;
    if (++accesses > MOST_ACCESSES)
        fail("is in a launch of more accesses than are emulated: it waits for another block, or the shape is too large");
    if (++turn > ACCESSES_IN_A_TURN) let_others_run();
    if (size_t(address - arena) < ARENA) return shared_access(address, bytes, write, atomic, code);
    if (address >= __ehdr_start && address < _end) return;
    if (address >= closure_begin && address + bytes <= closure_end && !write) return;
    const Region* region = region_of(address);
    if (!region || address + bytes > region->end)
        fail(text("%s %zu bytes ", write ? "writes" : "reads", bytes) + near(address, bytes) + ", at " + code_at(code));
    if (write && !region->writable) fail("writes " + region->name + ", which is const, at " + code_at(code));
}

}  // namespace

void run(const Config& what, void (*body)(const void*), const void* closure, size_t bytes) {
    if (error) return;
    config = what;
    if (!make_ready()) return;
    kernel_body = body;
    closure_begin = static_cast<const char*>(closure);
    closure_end = closure_begin + bytes;
    blockDim = config.block;
    gridDim = config.grid;
    accesses = 0;
    const dim3 &grid = config.grid, &block = config.block;
    for (size_t i = 0; i < thread_count; i++) {
        const unsigned rank = unsigned(i);
        threads[i].index = {rank % block.x, rank / block.x % block.y, rank / block.x / block.y};
    }
    const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = order == Order::forward ? i : blocks - 1 - i;
        blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
        if (!run_block()) {
            for (Thread& thread : threads) {  // their stacks are given up as they are
                thread.started = false;
                thread.copies.clear();
            }
            return;
        }
    }
}

int block_barrier(int predicate, Place place) {
    current->place = place;
    current->value = predicate != 0;
    current->state = State::at_barrier;
    suspend();
    return predicates;
}

const Meeting& meet(const char* operation, unsigned mask, uint64_t value, Place place) {
    current->place = place;
    current->operation = operation;
    current->mask = mask;
    current->value = value;
    if (!(mask >> lane() & 1)) fail(text("calls %s at %s for lanes 0x%08x, of which it is none", operation, text(place).c_str(), mask));
    current->state = State::in_warp;
    suspend();
    return current->met;
}

void access(const void* address, size_t bytes, bool write, bool atomic) {
    atomics += atomic;
    judge(address, bytes, write, atomic, CALLER);
}

void move_bytes(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

bool host_access(const void* pointer, size_t bytes, bool write) {
    const char* address = static_cast<const char*>(pointer);
    const Region* region = region_of(address);
    if (!region || (address + bytes <= region->end && (region->writable || !write))) return true;
    record(text("the host's runtime %s %zu bytes ", write ? "writes" : "reads", bytes) + near(address, bytes));
    return false;
}

void* Shared::at(size_t size, size_t alignment) {
    if (!bytes) {
        // Aligned as asked and no better: what needs more than the language promises fails here first.
        const size_t place = (arena_top + BETWEEN + 2 * alignment - 1) / (2 * alignment) * (2 * alignment) + alignment;
        if (place + size + BETWEEN > ARENA) fail("needs more shared variables than are emulated");
        begin = place;
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
    if (alignment > 1024) fail("asks for shared memory aligned to more than 1024 bytes");
    return arena + dynamic_begin;
}

void let_others_run() {
    turn = 0;
    suspend();
}

unsigned lane() { return unsigned(rank_of(*current) % LANES); }
void trap(Place place) { fail("traps at " + text(place)); }

void copy_later(void* to, const void* from, size_t bytes, size_t zeros) {
    judge(from, bytes - zeros, false, false, CALLER);
    current->copies.push_back({to, from, bytes, zeros, current->groups, CALLER});
}

void commit_copies() { current->groups++; }

void finish_copies(size_t groups_left) {
    std::vector<Copy> later;
    for (const Copy& copy : current->copies) {
        if (copy.group + groups_left >= current->groups) {
            later.push_back(copy);
            continue;
        }
        judge(copy.to, copy.bytes, true, false, copy.code);
        memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
        memset(static_cast<char*>(copy.to) + copy.bytes - copy.zeros, 0, copy.zeros);
    }
    current->copies.swap(later);
}

void* allocate(size_t bytes, const char* name, bool of_host) {
    void* made = aligned_alloc(512, (bytes + 511) / 512 * 512);
    memset(made, 0xFF, bytes);
    regions.push_back({static_cast<char*>(made), static_cast<char*>(made) + bytes, true, name, true, of_host});
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

void allow_dynamic_shared(size_t bytes) { dynamic_allowed = bytes > dynamic_allowed ? bytes : dynamic_allowed; }

int last_error(bool clear) {
    const int code = error;
    if (clear && code != LAUNCH_FAILURE) error = 0;  // a failed kernel stays an error, as it does on a GPU
    return code;
}

void set_error(int code) {
    if (!error) error = code;
}

const char* message_of(int code) {
    static std::string last;
    last = code ? (message.empty() ? text("error %d", code) : message) : "no error";
    return last.c_str();
}

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT void emulation_allow(const char* name, const void* begin, size_t bytes, bool writable) {
    regions.push_back({static_cast<const char*>(begin), static_cast<const char*>(begin) + bytes, writable, name, false, false});
}
EXPORT void emulation_forget() {
    std::vector<Region> kept;
    for (const Region& region : regions)
        if (region.allocated) kept.push_back(region);
    regions.swap(kept);
    if (!arena) return;
    for (Thread& thread : threads) thread.started = false;
    madvise(threads[0].stack, MOST_THREADS * STACK, MADV_DONTNEED);  // else every library that was ever loaded keeps its own
}
EXPORT void emulation_begin(int thread_order) {
    order = Order(thread_order);
    random_state = 1;
    atomics = 0;
    error = 0;
    message.clear();
}
EXPORT const char* emulation_error() { return error ? message_of(error) : ""; }
EXPORT uint64_t emulation_atomics() { return atomics; }

// What -fsanitize=thread makes of every load and store; its own runtime is not linked.
#define HOOK(kind, size, write) \
    void __tsan_##kind##size(void* p) { judge(p, size, write, false, CALLER); }
#define HOOKS(kind, write) HOOK(kind, 1, write) HOOK(kind, 2, write) HOOK(kind, 4, write) HOOK(kind, 8, write) HOOK(kind, 16, write)
HOOKS(read, false)
HOOKS(write, true)
HOOKS(unaligned_read, false)
HOOKS(unaligned_write, true)
void __tsan_read_range(void* p, size_t size) { judge(p, size, false, false, CALLER); }
void __tsan_write_range(void* p, size_t size) { judge(p, size, true, false, CALLER); }
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
uint8_t __tsan_atomic8_load(const volatile uint8_t* p, int) { return *p; }  // whether a static of a function was made

// What -fsanitize=undefined calls where it finds something; every description begins with the place.
struct Source {
    const char* file;
    uint32_t line, column;
};
static void undefined(const Source& source, const char* what) {
    const std::string found = std::string(what) + text(" at %s:%u", source.file, source.line);
    if (current) fail(found);
    record("the host " + found);
}
#define UNDEFINED(name, what) \
    void __ubsan_handle_##name(Source* source) { undefined(*source, what); }
UNDEFINED(type_mismatch_v1, "uses a null pointer, or one that is not aligned for its type,")
UNDEFINED(out_of_bounds, "indexes an array out of its bounds")
UNDEFINED(shift_out_of_bounds, "shifts by a negative number of bits, or by all or more of them,")
UNDEFINED(add_overflow, "overflows a signed integer in an addition")
UNDEFINED(sub_overflow, "overflows a signed integer in a subtraction")
UNDEFINED(mul_overflow, "overflows a signed integer in a multiplication")
UNDEFINED(negate_overflow, "overflows a signed integer in a negation")
UNDEFINED(divrem_overflow, "divides an integer by zero, or overflows it,")
UNDEFINED(missing_return, "leaves a function without the value that it returns")
void __assert_fail(const char* what, const char* file, unsigned line, const char*) noexcept(false) {
    const std::string found = std::string("fails its assertion `") + what + text("` at %s:%u", file, line);
    if (!current) record("the host " + found), abort();
    fail(found);
}

}  // extern "C"
}  // namespace cuda_on_cpu
