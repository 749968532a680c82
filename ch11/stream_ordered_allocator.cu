// Memory in stream order: a pool hands out a block that the stream's earlier work frees, and the host waits for nothing.
// mkdir -p build && nvcc -O3 ch11/stream_ordered_allocator.cu -o build/stream_ordered_allocator && build/stream_ordered_allocator
#include <cstdint>
#include <vector>

#include "../ch06/shared_check.cuh"

constexpr int ROUNDS = 8, COUNT = 1 << 20, BLOCK = 256;

__global__ void fill(int* to, int value) { to[blockIdx.x * BLOCK + threadIdx.x] = value; }
__global__ void add(const int* from, int* to) { to[blockIdx.x * BLOCK + threadIdx.x] += from[blockIdx.x * BLOCK + threadIdx.x]; }

uint64_t of_pool(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    uint64_t bytes;
    CHECK(cudaMemPoolGetAttribute(pool, attribute, &bytes));
    return bytes;
}

int main() {
    const size_t bytes = sizeof(int) * COUNT;
    cudaMemPool_t pool;
    cudaStream_t stream;
    uint64_t keep = UINT64_MAX;  // bytes that the pool keeps at a synchronization; 0 unless it is set
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    int* sum;
    CHECK(cudaMallocAsync(&sum, bytes, stream));
    CHECK(cudaMemsetAsync(sum, 0, bytes, stream));
    for (int round = 1; round <= ROUNDS; round++) {
        int* part;
        CHECK(cudaMallocAsync(&part, bytes, stream));
        fill<<<COUNT / BLOCK, BLOCK, 0, stream>>>(part, round);
        add<<<COUNT / BLOCK, BLOCK, 0, stream>>>(part, sum);
        CHECK(cudaGetLastError());
        CHECK(cudaFreeAsync(part, stream));  // the next round gets the same memory, after `add`
    }
    std::vector<int> found(COUNT);
    CHECK(cudaMemcpyAsync(found.data(), sum, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(sum, stream));
    CHECK(cudaStreamSynchronize(stream));

    for (int i = 0; i < COUNT; i++) {
        if (found[i] != ROUNDS * (ROUNDS + 1) / 2) {
            fprintf(stderr, "stream_ordered_allocator: found %d at %d, expected %d\n", found[i], i, ROUNDS * (ROUNDS + 1) / 2);
            return 1;
        }
    }
    const uint64_t used = of_pool(pool, cudaMemPoolAttrUsedMemHigh), reserved = of_pool(pool, cudaMemPoolAttrReservedMemCurrent);
    CHECK(cudaMemPoolTrimTo(pool, 0));
    const uint64_t left = of_pool(pool, cudaMemPoolAttrReservedMemCurrent);
    if (used > 2 * bytes || reserved < used || left) {
        fprintf(stderr, "stream_ordered_allocator: found %lu bytes used, %lu kept, %lu after the trim; expected at most %zu, as many, 0\n",
                static_cast<unsigned long>(used), static_cast<unsigned long>(reserved), static_cast<unsigned long>(left), 2 * bytes);
        return 1;
    }
    printf("%d sums are right; %d allocations in %lu KiB\n", COUNT, ROUNDS + 1, static_cast<unsigned long>(used >> 10));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
