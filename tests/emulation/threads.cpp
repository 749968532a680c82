// Blocks one after another, their threads as fibers: a thread runs until it has to wait, and when none can run, the waiting is resolved.
#include "machine.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_on_cpu {

Running running;
Config config;
const char *closure_begin, *closure_end;
uint64_t block_serial;
uint32_t interval;
uint32_t warp_interval[MOST_THREADS / LANES];

namespace {

constexpr int INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, LAUNCH_FAILURE = 719, CAPTURE_UNSUPPORTED = 900;

enum class Order { forward, backward, shuffled };
enum class State { ready, at_barrier, in_warp, done };

struct Thread {
    jmp_buf context;
    char* stack;
    bool started = false;
    State state = State::done;
    uint3 index;
    // What a thread brings to where it waits, and what it takes from there.
    Place place;
    const char* operation;
    unsigned mask;
    uint64_t value;
    Meeting met;
};

Thread threads[MOST_THREADS];
size_t thread_count;
jmp_buf scheduler;
void (*kernel_body)(const void*);
int predicates;
Order order;
uint64_t random_state;

size_t dynamic_allowed = MOST_STATIC_SHARED;
int error;
std::string message;

bool capturing;
std::vector<Work> captured;

Thread& current() { return threads[running.rank]; }

void suspend() {
    if (_setjmp(current().context) == 0) _longjmp(scheduler, 1);
}

void wait_as(State state, Place place, uint64_t value) {
    current().place = place;
    current().value = value;
    current().state = state;
    suspend();
}

void fiber() {
    for (;;) {  // a block's thread each time
        kernel_body(closure_begin);
        commit_copies();
        finish_copies(0);
        current().state = State::done;
        suspend();
    }
}

// Runs a thread until it waits or ends; false if it failed.
__attribute__((noinline)) bool resume(size_t rank) {
    Thread& thread = threads[rank];
    running = {true, rank, thread.stack, 0};
    threadIdx = thread.index;
    const int came_back = _setjmp(scheduler);  // 1 from suspend, 2 from fail
    if (came_back == 0) {
        if (thread.started) _longjmp(thread.context, 1);
        thread.started = true;
        static ucontext_t start;
        getcontext(&start);
        start.uc_stack.ss_sp = thread.stack;
        start.uc_stack.ss_size = STACK;
        makecontext(&start, fiber, 0);
        setcontext(&start);
    }
    running.kernel = false;
    return came_back == 1;
}

unsigned lanes_alive(size_t warp) {
    unsigned alive = 0;
    for (size_t rank = warp * LANES; rank < thread_count && rank < (warp + 1) * LANES; rank++)
        if (threads[rank].state != State::done) alive |= 1u << rank % LANES;
    return alive;
}

// Lets the lanes that the thread waits for go on with it, if all of them are there.
bool release_lanes(size_t rank) {
    const Thread& thread = threads[rank];
    Thread* lanes = &threads[warp_of(rank) * LANES];
    Meeting met{thread.mask & lanes_alive(warp_of(rank)), {}};
    for (int i = 0; i < LANES; i++) {
        const bool awaited = met.lanes >> i & 1;
        const bool same = lanes[i].state == State::in_warp && lanes[i].mask == thread.mask && !strcmp(lanes[i].operation, thread.operation);
        if (awaited && !same) return false;
        met.values[i] = awaited ? lanes[i].value : ~0ull;
    }
    for (int i = 0; i < LANES; i++)
        if (met.lanes >> i & 1) {
            lanes[i].met = met;
            lanes[i].state = State::ready;
        }
    if (!strcmp(thread.operation, "__syncwarp")) warp_interval[warp_of(rank)]++;
    return true;
}

bool release_block() {
    int count = 0;
    for (size_t i = 0; i < thread_count; i++) {
        const Place place = threads[i].place, first = threads[0].place;
        if (threads[i].state != State::at_barrier || place.line != first.line || strcmp(place.file, first.file)) return false;
        count += threads[i].value != 0;
    }
    predicates = count;
    interval++;
    for (size_t i = 0; i < thread_count; i++) threads[i].state = State::ready;
    return true;
}

std::string here() { return text("kernel %s, block ", config.kernel) + text(blockIdx); }

std::string where(const Thread& thread) {
    const std::string who = "thread " + text(thread.index);
    if (thread.state == State::done) return who + " has returned";
    if (thread.state == State::at_barrier) return who + " is at the barrier of " + text(thread.place);
    return who + " is at " + thread.operation + " of " + text(thread.place) + text(" for lanes 0x%08x", thread.mask);
}

// Says who waits, and one of those whom it waits for and who is elsewhere.
void record_deadlock() {
    size_t waiting = thread_count;
    for (size_t i = 0; i < thread_count; i++)
        if (threads[i].state != State::done && (waiting == thread_count || threads[i].state == State::in_warp)) waiting = i;
    const Thread& one = threads[waiting];
    for (size_t i = 0; i < thread_count; i++) {
        const Thread& other = threads[i];
        const bool awaited = one.state == State::at_barrier || (warp_of(i) == warp_of(waiting) && one.mask >> i % LANES & 1);
        const bool elsewhere =
            other.state != one.state || other.place.line != one.place.line || (one.state == State::in_warp && other.mask != one.mask);
        if (awaited && elsewhere) {
            record(here() + " waits for ever: " + where(one) + ", " + where(other));
            return;
        }
    }
    record(here() + " waits for ever: " + where(one));
}

bool release_waiting() {
    bool released = false;
    for (size_t i = 0; i < thread_count; i++)
        if (threads[i].state == State::in_warp) released |= release_lanes(i);
    if (released || release_block()) return true;
    record_deadlock();
    return false;
}

size_t random_below(size_t n) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return size_t(random_state >> 33) % n;
}

void take_turns(std::vector<uint16_t>& turns) {
    for (size_t i = 0; i < turns.size(); i++) turns[i] = uint16_t(order == Order::backward ? turns.size() - 1 - i : i);
    if (order == Order::shuffled)
        for (size_t i = turns.size(); i > 1; i--) std::swap(turns[i - 1], turns[random_below(i)]);
}

bool run_block() {
    block_serial++;
    interval++;
    begin_block_memory();
    for (size_t i = 0; i < thread_count; i++) threads[i].state = State::ready;
    std::vector<uint16_t> turns(thread_count);
    for (;;) {
        take_turns(turns);
        bool ran = false, all_done = true;
        for (uint16_t rank : turns) {
            if (threads[rank].state == State::ready) {
                ran = true;
                if (!resume(rank)) return false;
            }
            all_done &= threads[rank].state == State::done;
        }
        if (all_done) return true;
        if (!ran && !release_waiting()) return false;
    }
}

void set_error(int code, const std::string& what) {
    if (!error) {
        error = code;
        message = what;
    }
}

bool can_be_launched() {
    const dim3 &grid = config.grid, &block = config.block;
    const uint64_t count = uint64_t(block.x) * block.y * block.z;
    const bool blocks = grid.x && grid.y && grid.z && grid.x <= 0x7FFFFFFF && grid.y <= 65535 && grid.z <= 65535;
    if (!blocks || !count || count > MOST_THREADS || block.z > 64) {
        const std::string found = text("kernel %s: found grid %s of blocks %s", config.kernel, text(grid).c_str(), text(block).c_str());
        set_error(INVALID_CONFIGURATION,
                  found + "; expected neither to be empty, at most 1024 threads a block and 65535 blocks along y and z");
    } else if (config.shared > dynamic_allowed) {
        const std::string found = text("kernel %s: found %zu bytes of dynamic shared memory", config.kernel, config.shared);
        set_error(INVALID_VALUE, found + text("; expected at most %zu, or cudaFuncSetAttribute to allow more", dynamic_allowed));
    }
    return !error;
}

void make_stacks() {
    if (threads[0].stack) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* made = mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED) abort();
    for (size_t i = 0; i < MOST_THREADS; i++) threads[i].stack = static_cast<char*>(made) + i * STACK;
}

void abandon_stacks() {
    for (Thread& thread : threads) thread.started = false;
}

}  // namespace

void run(const Config& what, void (*body)(const void*), const void* closure, size_t bytes) {
    if (error) return;
    config = what;
    if (!can_be_launched()) return;
    make_stacks();
    begin_launch_memory();
    kernel_body = body;
    closure_begin = static_cast<const char*>(closure);
    closure_end = closure_begin + bytes;
    blockDim = config.block;
    gridDim = config.grid;
    const dim3 &grid = config.grid, &block = config.block;
    thread_count = size_t(block.x) * block.y * block.z;
    for (size_t i = 0; i < thread_count; i++) {
        const unsigned rank = unsigned(i);
        threads[i].index = {rank % block.x, rank / block.x % block.y, rank / block.x / block.y};
    }
    const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = order == Order::forward ? i : blocks - 1 - i;
        blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
        if (!run_block()) return abandon_stacks();
    }
}

int block_barrier(int predicate, Place place) {
    wait_as(State::at_barrier, place, predicate != 0);
    return predicates;
}

const Meeting& meet(const char* operation, unsigned mask, uint64_t value, Place place) {
    if (!(mask >> lane() & 1)) fail(text("calls %s at %s for lanes 0x%08x, of which it is none", operation, text(place).c_str(), mask));
    current().operation = operation;
    current().mask = mask;
    wait_as(State::in_warp, place, value);
    return current().met;
}

unsigned lane() { return unsigned(running.rank % LANES); }
uint3 index_of(size_t rank) { return threads[rank].index; }

void let_others_run() {
    running.accesses = 0;
    suspend();
}

void trap(Place place) { fail("traps at " + text(place)); }

void enqueue(Work work) {
    if (!capturing) return work();
    captured.push_back(std::move(work));
}

void begin_capture() {
    forbid_capture();
    capturing = true;
}

std::vector<Work> end_capture() {
    capturing = false;
    return std::exchange(captured, {});
}

void forbid_capture() {
    if (capturing)
        set_error(CAPTURE_UNSUPPORTED, "the host waits, allocates or captures while it captures a graph, which is not permitted");
}

int last_error(bool clear) {
    const int code = error;
    if (clear && code != LAUNCH_FAILURE) error = 0;  // a kernel that failed leaves a GPU in error for good
    return code;
}

const char* message_of(int code) {
    static std::string last;
    last = !code ? "no error" : message.empty() ? text("error %d", code) : message;
    return last.c_str();
}

void allow_dynamic_shared(size_t bytes) { dynamic_allowed = std::max(dynamic_allowed, bytes); }

std::string text(const char* format, ...) {
    char line[1000];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

void record(const std::string& what) { set_error(LAUNCH_FAILURE, what); }

void fail(const std::string& what) {
    record(here() + ", thread " + text(threadIdx) + " " + what);
    _longjmp(scheduler, 2);
}

#pragma GCC visibility push(default)
extern "C" {

// Begins a call, the threads of whose blocks take turns in the order given, without the errors of earlier ones.
void emulation_begin(int thread_order) {
    order = Order(thread_order);
    random_state = 1;
    atomics = 0;
    error = 0;
    message.clear();
}

// What went wrong since, or nothing.
const char* emulation_error() { return error ? message_of(error) : ""; }

uint64_t emulation_atomics() { return atomics; }

// Ends what was allowed before.
void emulation_forget() {
    forget_arrays();
    abandon_stacks();
    // Else every library that was ever loaded would keep its own.
    if (threads[0].stack) madvise(threads[0].stack, MOST_THREADS * STACK, MADV_DONTNEED);
}

}  // extern "C"
#pragma GCC visibility pop
}  // namespace cuda_on_cpu
