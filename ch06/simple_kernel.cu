// The life of data on a GPU: allocate, copy in, launch, copy out, check, free.
// mkdir -p build && nvcc -std=c++17 -O3 ch06/simple_kernel.cu -o build/simple_kernel && build/simple_kernel
#include <vector>

#include "shared_check.cuh"

__global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];  // the last block has threads to spare
}

int main() {
    const int n = 1000, threads = 256;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = float(i);

    float *x_device, *y_device;
    CHECK(cudaMalloc(&x_device, n * sizeof(float)));
    CHECK(cudaMalloc(&y_device, n * sizeof(float)));
    CHECK(cudaMemcpy(x_device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    square<<<(n + threads - 1) / threads, threads>>>(x_device, y_device, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(y.data(), y_device, n * sizeof(float), cudaMemcpyDeviceToHost));  // waits for the kernel

    for (int i = 0; i < n; i++) {
        if (y[i] != x[i] * x[i]) {
            fprintf(stderr, "simple_kernel: y[%d] is %g; expected %g\n", i, y[i], x[i] * x[i]);
            return 1;
        }
    }
    CHECK(cudaFree(x_device));
    CHECK(cudaFree(y_device));
    printf("%d squares are right\n", n);
    return 0;
}
