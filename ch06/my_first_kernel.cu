// The smallest whole CUDA program: a kernel, its launch, and the two calls that ask whether it worked.
// mkdir -p build && nvcc -std=c++17 -O3 ch06/my_first_kernel.cu -o build/my_first_kernel && build/my_first_kernel
#include <cstdio>
#include <cuda_runtime.h>

__global__ void greet() { printf("block %d of %d, thread %d of %d\n", blockIdx.x, gridDim.x, threadIdx.x, blockDim.x); }

int main() {
    greet<<<2, 4>>>();
    cudaError_t error = cudaGetLastError();                     // was the launch accepted?
    if (error == cudaSuccess) error = cudaDeviceSynchronize();  // did it end well?
    if (error != cudaSuccess) {
        fprintf(stderr, "my_first_kernel: %s\n", cudaGetErrorString(error));
        return 1;
    }
    return 0;
}
