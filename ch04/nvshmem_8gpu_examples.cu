// Three exchanges that kernels start themselves, through NVSHMEM: a ring of puts with signals, an all-gather, an all-reduce by loads.
// N=$(python3 -c "import nvidia; print(list(nvidia.__path__)[0])")/nvshmem && mkdir -p build && nvcc -rdc=true -arch=native -I.
//     -I$N/include -L$N/lib -lnvshmem_device -Xlinker -l:libnvshmem_host.so.3,-rpath=$N/lib
//     ch04/nvshmem_8gpu_examples.cu -o build/nvshmem_8gpu_examples && build/nvshmem_8gpu_examples 2      (processes, each with a GPU)
#include <nvshmem.h>
#include <nvshmemx.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <vector>
#include "ch06/shared_check.cuh"

constexpr int COUNT = 1 << 20;  // floats of a rank
constexpr int BLOCKS = 16, THREADS = 256, SHARE = COUNT / BLOCKS;

// Each block puts one share of `x` into the next rank's inbox, and then counts it there.
__global__ void put_to_next(float* inbox, const float* x, uint64_t* arrived) {
    const int at = blockIdx.x * SHARE, next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    nvshmemx_float_put_signal_block(inbox + at, x + at, SHARE, arrived, 1, NVSHMEM_SIGNAL_ADD, next);
}

// The same into every rank's `gathered`, at this rank's place; the neighbour first, so that not all write to one rank at once.
__global__ void put_to_all(float* gathered, const float* x, uint64_t* arrived) {
    const int at = blockIdx.x * SHARE, me = nvshmem_my_pe(), ranks = nvshmem_n_pes();
    for (int i = 1; i <= ranks; i++) {
        float* place = gathered + size_t(me) * COUNT + at;
        nvshmemx_float_put_signal_block(place, x + at, SHARE, arrived, 1, NVSHMEM_SIGNAL_ADD, (me + i) % ranks);
    }
}

__global__ void wait_for(uint64_t* arrived, uint64_t count) { nvshmem_signal_wait_until(arrived, NVSHMEM_CMP_GE, count); }

// Loads what lies at the place of `x` on every rank: by an address where NVLink gives one, else a value at a time.
__global__ void add_up(float* total, const float* x) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < COUNT; i += BLOCKS * THREADS) {
        float sum = 0;
        for (int rank = 0; rank < nvshmem_n_pes(); rank++) {
            const float* theirs = static_cast<const float*>(nvshmem_ptr(x, rank));
            sum += theirs ? theirs[i] : nvshmem_float_g(x + i, rank);
        }
        total[i] = sum;
    }
}

float value_of(int rank, int i) { return float(1000 * rank + i % 997); }  // sums of which a float holds

// Ends the process unless the `count` floats at `found` are those that `expected` tells, by place.
template <typename Expected>
void require(const char* what, const float* found, size_t count, Expected expected) {
    std::vector<float> here(count);
    CHECK(cudaMemcpy(here.data(), found, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        if (here[i] == expected(i)) continue;
        fprintf(stderr, "%s: rank %d has %g at %zu; expected %g\n", what, nvshmem_my_pe(), here[i], i, expected(i));
        nvshmem_global_exit(1);
    }
}

struct Shared {  // what the processes agree on before NVSHMEM connects them
    std::atomic<bool> ready;
    nvshmemx_uniqueid_t id;
};

void connect(int rank, int ranks, Shared* shared) {
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < ranks) fprintf(stderr, "found %d GPUs; expected %d, one a process\n", gpus, ranks), exit(1);
    CHECK(cudaSetDevice(rank));
    if (rank == 0) {
        shared->id = NVSHMEMX_UNIQUEID_INITIALIZER;
        nvshmemx_get_uniqueid(&shared->id);
        shared->ready = true;
    }
    while (!shared->ready) usleep(100);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(rank, ranks, &shared->id, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes)) exit(1);
}

void exchange(int rank, int ranks) {
    auto floats = [](size_t count) { return static_cast<float*>(nvshmem_malloc(count * sizeof(float))); };
    float *x = floats(COUNT), *inbox = floats(COUNT), *total = floats(COUNT), *gathered = floats(size_t(COUNT) * ranks);
    auto* arrived = static_cast<uint64_t*>(nvshmem_calloc(2, sizeof(uint64_t)));
    std::vector<float> mine(COUNT);
    for (int i = 0; i < COUNT; i++) mine[i] = value_of(rank, i);
    CHECK(cudaMemcpy(x, mine.data(), COUNT * sizeof(float), cudaMemcpyHostToDevice));
    nvshmem_barrier_all();  // every rank has its values and its counters
    put_to_next<<<BLOCKS, THREADS>>>(inbox, x, arrived);
    wait_for<<<1, 1>>>(arrived, BLOCKS);
    require("ring", inbox, COUNT, [=](size_t i) { return value_of((rank + ranks - 1) % ranks, i); });
    put_to_all<<<BLOCKS, THREADS>>>(gathered, x, arrived + 1);
    wait_for<<<1, 1>>>(arrived + 1, BLOCKS * ranks);
    require("all-gather", gathered, size_t(COUNT) * ranks, [=](size_t i) { return value_of(i / COUNT, i % COUNT); });
    add_up<<<BLOCKS, THREADS>>>(total, x);
    require("all-reduce", total, COUNT, [=](size_t i) { return 1000.0f * (ranks * (ranks - 1) / 2) + ranks * float(i % 997); });
    CHECK(cudaGetLastError());
    nvshmem_barrier_all();  // nobody frees what another reads
    for (float* each : {x, inbox, total, gathered}) nvshmem_free(each);
    nvshmem_free(arrived);
}

int main(int count, char** arguments) {
    const int ranks = count > 1 ? atoi(arguments[1]) : 2;
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);  // no NVLink multicast: a host's GPUs may be shared
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int rank = 0; rank < ranks; rank++) {
        if (fork()) continue;
        connect(rank, ranks, static_cast<Shared*>(memory));
        exchange(rank, ranks);
        nvshmem_finalize();
        return 0;
    }
    int failed = ranks < 1;
    for (int status; wait(&status) > 0;) failed += status != 0;
    if (!failed) printf("ring, all-gather and all-reduce of %d processes are right\n", ranks);
    return failed != 0;
}
