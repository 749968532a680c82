// Baseline: one persistent block per SM takes every sms-th task.
#include "common/cuda/launch.cuh"

constexpr int STATES = 8192, WALKERS = 1024;

__global__ void __launch_bounds__(WALKERS) walk(const int* __restrict__ successor, const int* __restrict__ steps, int* y, int tasks) {
    __shared__ int table[STATES];
    for (int i = threadIdx.x; i < STATES; i += WALKERS) table[i] = successor[i];
    __syncthreads();
    for (int task = blockIdx.x; task < tasks; task += gridDim.x) {
        size_t walker = size_t(task) * WALKERS + threadIdx.x;
        int at = walker % STATES;
        for (int left = steps[task]; left > 0; left--) at = table[at];
        y[walker] = at;
    }
}

LAUNCH(const int* successor, const int* steps, int* y, int tasks, cudaStream_t stream) {
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    walk<<<sms, WALKERS, 0, stream>>>(successor, steps, y, tasks);
    return cudaGetLastError();
}
