// A CPU and a GPU take turns at one word: how long a round trip takes in pinned memory, and in malloc's where the link is coherent.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch02/gb200_grace_blackwell_coherency.cu -o build/coherency && build/coherency
#include <chrono>
#include <cuda/atomic>

#include "ch06/shared_check.cuh"
#include "common/cuda/clock.cuh"

constexpr int ROUNDS = 2000, ADDS = 1 << 20;
constexpr double LIMIT_S = 2;  // after which either side gives up, so that nothing hangs
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Answers the CPU's 2 r + 1 with 2 r + 2, for each round r.
__global__ void answer(unsigned* word) {
    const Word shared(*word);
    const uint64_t begin = global_time();
    for (unsigned round = 0; round < ROUNDS; round++) {
        while (shared.load(cuda::memory_order_acquire) != 2 * round + 1)
            if (global_time() - begin > uint64_t(LIMIT_S * 1e9)) return;
        shared.store(2 * round + 2, cuda::memory_order_release);
    }
}

__global__ void add(unsigned* word) {
    for (int i = 0; i < ADDS; i++) Word(*word).fetch_add(1, cuda::memory_order_relaxed);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Microseconds of a round trip through `word`; negative if the GPU did not answer.
double round_trip(unsigned* word) {
    const Word shared(*word);
    shared.store(0);
    answer<<<1, 1>>>(word);
    CHECK(cudaGetLastError());
    double begin = now();
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round == 1) begin = now();  // the first waits for the launch
        shared.store(2 * round + 1, cuda::memory_order_release);
        const double asked = now();
        while (shared.load(cuda::memory_order_acquire) != 2 * round + 2) {
            if (now() - asked > LIMIT_S) {
                CHECK(cudaDeviceSynchronize());
                return -1;
            }
        }
    }
    const double end = now();
    CHECK(cudaDeviceSynchronize());
    return (end - begin) * 1e6 / (ROUNDS - 1);
}

bool told(const char* memory, unsigned* word) {
    const double microseconds = round_trip(word);
    if (microseconds < 0) fprintf(stderr, "coherency: the GPU did not answer in %s memory within %g s\n", memory, LIMIT_S);
    if (microseconds >= 0) printf("%s: a round trip between CPU and GPU takes %.2f us\n", memory, microseconds);
    return microseconds >= 0;
}

// Whether CPU and GPU lose no addition to one word that both add to at the same time.
bool adds_up(unsigned* word) {
    *word = 0;
    add<<<1, 1>>>(word);
    CHECK(cudaGetLastError());
    for (int i = 0; i < ADDS; i++) Word(*word).fetch_add(1, cuda::memory_order_relaxed);
    CHECK(cudaDeviceSynchronize());
    if (*word == 2u * ADDS) printf("malloc: %d additions of each, none lost\n", ADDS);
    if (*word != 2u * ADDS) fprintf(stderr, "coherency: found %u additions; expected %u\n", *word, 2u * ADDS);
    return *word == 2u * ADDS;
}

int main() {
    int page_tables, atomics;
    unsigned* pinned;
    CHECK(cudaDeviceGetAttribute(&page_tables, cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0));
    CHECK(cudaDeviceGetAttribute(&atomics, cudaDevAttrHostNativeAtomicSupported, 0));
    CHECK(cudaMallocHost(&pinned, sizeof *pinned));
    bool is_right = told("pinned", pinned);
    CHECK(cudaFreeHost(pinned));
    if (!page_tables) {
        printf(
            "malloc: SKIPPED, needs a GPU that uses the CPU's page tables (NVLink-C2C: GH200, GB200, GB300); try the pinned line above\n");
        return is_right ? 0 : 1;
    }
    unsigned* word = new unsigned(0);
    is_right &= told("malloc", word);
    if (atomics) is_right &= adds_up(word);
    delete word;
    return is_right ? 0 : 1;
}
