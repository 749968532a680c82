// What the occupancy API knows: for each block size, how many warps of a kernel an SM holds, and which size it would choose.
// mkdir -p build && nvcc -std=c++17 -O3 ch06/occupancy_api.cu -o build/occupancy_api && build/occupancy_api
#include "shared_check.cuh"

__global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

int main() {
    int device = 0, most_threads = 0, most_warps = 0;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
    printf("threads a block  blocks an SM  warps an SM of %d\n", most_threads / 32);
    for (int threads : {32, 64, 96, 100, 128, 256, 512, 768, 1024}) {
        int blocks = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, threads, 0));
        const int warps = blocks * ((threads + 31) / 32);  // a warp that is not full takes the room of a full one
        printf("%15d  %12d  %11d\n", threads, blocks, warps);
        if (blocks < 1 || warps * 32 > most_threads) {
            fprintf(stderr, "occupancy_api: %d blocks of %d threads; expected at least 1 and at most %d threads\n", blocks, threads,
                    most_threads);
            return 1;
        }
        if (warps > most_warps) most_warps = warps;
    }
    int fewest_blocks = 0, threads = 0, blocks = 0;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&fewest_blocks, &threads, scale, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, threads, 0));
    if (blocks * threads < 32 * most_warps) {
        fprintf(stderr, "occupancy_api: the choice is %d blocks of %d threads; expected %d warps\n", blocks, threads, most_warps);
        return 1;
    }
    printf("the API's choice: %d threads a block, at least %d blocks to fill the GPU\n", threads, fewest_blocks);
    return 0;
}
