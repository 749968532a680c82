// Each two GPUs: how fast one reads the other's memory by loads, and copies to it, one way and both ways at once. Needs peer access.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch02/nvlink_c2c_p2p_blackwell.cu -o build/p2p && build/p2p
#include "ch02/line_cycle.cuh"

constexpr size_t BYTES = 256u << 20;

struct Gpu {
    int device;
    unsigned *set, *inbox;  // in its memory: what others read, and where copies arrive
    cudaEvent_t event;
};

Gpu made(int device, const std::vector<unsigned>& set) {
    Gpu gpu{device};
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&gpu.set, BYTES));
    CHECK(cudaMalloc(&gpu.inbox, BYTES));
    CHECK(cudaMemcpy(gpu.set, set.data(), BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaEventCreateWithFlags(&gpu.event, cudaEventDisableTiming));
    return gpu;
}

// The current device's default stream copies from one GPU to the other.
void send(const Gpu& from, const Gpu& to) { CHECK(cudaMemcpyPeerAsync(to.inbox, to.device, from.set, from.device, BYTES)); }

// `b` copies to `a`, on its own default stream, while `a`, the current device, copies to `b`.
void swap(const Gpu& a, const Gpu& b) {
    CHECK(cudaEventRecord(a.event));
    CHECK(cudaSetDevice(b.device));
    CHECK(cudaStreamWaitEvent(0, a.event));
    send(b, a);
    CHECK(cudaEventRecord(b.event));
    CHECK(cudaSetDevice(a.device));
    send(a, b);
    CHECK(cudaStreamWaitEvent(0, b.event));
}

// Whether the copies to `gpu` brought what was sent; empties its inbox.
bool arrived(const Gpu& gpu, const std::vector<unsigned>& set) {
    std::vector<unsigned> found(set.size());
    CHECK(cudaSetDevice(gpu.device));
    CHECK(cudaMemcpy(found.data(), gpu.inbox, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(gpu.inbox, 0xff, BYTES));
    CHECK(cudaDeviceSynchronize());
    if (found != set) fprintf(stderr, "p2p: a copy to GPU %d did not arrive\n", gpu.device);
    return found == set;
}

bool measured(const Gpu& a, const Gpu& b, const std::vector<unsigned>& cycle, const std::vector<unsigned>& set) {
    int reaches, atomics;
    char name[32];
    CHECK(cudaDeviceCanAccessPeer(&reaches, a.device, b.device));
    if (!reaches) {
        printf("GPU %d to GPU %d: SKIPPED, needs peer access, which these two do not have\n", a.device, b.device);
        return true;
    }
    CHECK(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, a.device, b.device));
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
        CHECK(cudaSetDevice(from.device));
        const cudaError_t error = cudaDeviceEnablePeerAccess(to.device, 0);
        if (error != cudaErrorPeerAccessAlreadyEnabled) CHECK(error);
        cudaGetLastError();
    }
    CHECK(cudaSetDevice(a.device));
    snprintf(name, sizeof name, "GPU %d", b.device);
    bool is_right = measured(name, b.set, cycle);
    const float one = fastest([&] { send(a, b); });
    is_right &= arrived(b, set);
    CHECK(cudaSetDevice(a.device));
    const float both = fastest([&] { swap(a, b); });
    is_right &= arrived(b, set) && arrived(a, set);
    printf("GPU %d to GPU %d: copies %.1f GB/s, both ways together %.1f GB/s; atomics %s\n", a.device, b.device, BYTES / one / 1e6,
           2 * BYTES / both / 1e6, atomics ? "yes" : "no");
    return is_right;
}

int main() {
    int count;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        printf("SKIPPED: needs 2 GPUs; this machine has %d\n", count);
        return 0;
    }
    const std::vector<unsigned> cycle = cycle_of(BYTES), set = set_of(cycle);
    std::vector<Gpu> gpus;
    bool is_right = true;
    for (int device = 0; device < count; device++) gpus.push_back(made(device, set));
    for (const Gpu& a : gpus)
        for (const Gpu& b : gpus)
            if (a.device < b.device) is_right &= measured(a, b, cycle, set);
    return is_right ? 0 : 1;
}
