// Bandwidth and latency by memory and working set: HBM, the L2, pinned memory of the host, and pageable where a kernel can read it.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch02/memory_tiers.cu -o build/memory_tiers && build/memory_tiers
#include "ch02/line_cycle.cuh"

int main() {
    int reads_pageable;
    CHECK(cudaDeviceGetAttribute(&reads_pageable, cudaDevAttrPageableMemoryAccess, 0));
    printf("memory    working set  bandwidth       latency\n");
    bool is_right = true;
    for (size_t bytes : {size_t(1) << 20, size_t(16) << 20, size_t(256) << 20}) {  // the first two fit the L2 of a Hopper
        const std::vector<unsigned> cycle = cycle_of(bytes), pageable = set_of(cycle);
        unsigned *device, *pinned;
        CHECK(cudaMalloc(&device, bytes));
        CHECK(cudaMallocHost(&pinned, bytes));
        CHECK(cudaMemcpy(device, pageable.data(), bytes, cudaMemcpyHostToDevice));
        std::copy(pageable.begin(), pageable.end(), pinned);
        is_right &= measured("device", device, cycle);
        is_right &= measured("pinned", pinned, cycle);
        if (reads_pageable) is_right &= measured("pageable", pageable.data(), cycle);
        CHECK(cudaFree(device));
        CHECK(cudaFreeHost(pinned));
    }
    if (!reads_pageable)
        printf("pageable: SKIPPED, needs a GPU whose kernels read it (HMM, or NVLink-C2C); copies of it: benchmark_cli peak\n");
    return is_right ? 0 : 1;
}
