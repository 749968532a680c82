// One pointer for host and device: pages of managed memory move to whoever touches them, unless they are sent ahead.
// mkdir -p build && nvcc -std=c++17 -O3 ch06/unified_memory.cu -o build/unified_memory && build/unified_memory
#include "shared_check.cuh"

__global__ void increment(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i]++;
}

int main() {
    const int n = 1 << 20;  // 4 MiB: managed memory is for convenience here, and never larger than the GPU's own
    const int threads = 256;
    int device = 0, *x;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaMallocManaged(&x, n * sizeof(int)));
    for (int i = 0; i < n; i++) x[i] = i;  // the pages are the host's now

    int prefetches = 0;
    CHECK(cudaDeviceGetAttribute(&prefetches, cudaDevAttrConcurrentManagedAccess, device));
    cudaMemLocation here = {cudaMemLocationTypeDevice, device};
    if (prefetches) CHECK(cudaMemPrefetchAsync(x, n * sizeof(int), here, 0));  // one copy instead of a fault a page
    increment<<<n / threads, threads>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());  // before this the host must not look

    for (int i = 0; i < n; i++) {
        if (x[i] != i + 1) {
            fprintf(stderr, "unified_memory: x[%d] is %d; expected %d\n", i, x[i], i + 1);
            return 1;
        }
    }
    CHECK(cudaFree(x));
    printf("%d increments are right, %s\n", n, prefetches ? "prefetched" : "page by page: this device takes no prefetches");
    return 0;
}
