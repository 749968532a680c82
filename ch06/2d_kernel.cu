// Two-dimensional blocks on a two-dimensional grid: x counts columns, so that neighbouring threads have neighbouring floats.
// mkdir -p build && nvcc -std=c++17 -O3 ch06/2d_kernel.cu -o build/2d_kernel && build/2d_kernel
#include <vector>

#include "shared_check.cuh"

__global__ void number(int* grid, int rows, int cols) {
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows && c < cols) grid[r * cols + c] = 1000 * r + c;
}

int main() {
    const int rows = 45, cols = 70;
    const dim3 block(32, 8);  // a warp is one row of the block
    const dim3 blocks((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
    std::vector<int> grid(rows * cols);
    int* grid_device;
    CHECK(cudaMalloc(&grid_device, grid.size() * sizeof(int)));
    number<<<blocks, block>>>(grid_device, rows, cols);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(grid.data(), grid_device, grid.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(grid_device));
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            if (grid[r * cols + c] != 1000 * r + c) {
                fprintf(stderr, "2d_kernel: entry (%d, %d) is %d; expected %d\n", r, c, grid[r * cols + c], 1000 * r + c);
                return 1;
            }
        }
    }
    printf("%d x %d entries from %d x %d blocks are right\n", rows, cols, blocks.y, blocks.x);
    return 0;
}
