// Optimized: a free block takes the next task from an atomic queue.
// predicts: baseline 1.37 ms = (16 * long + 108 * short) * 4 * 1024 * 3.6 / (smem / sm_count)  (the worst SM: 16 long tasks of 124)
// predicts: optimized 0.992 ms = tasks * (1.05 * (15 * short + long) / 16 + 6) * 4 * 1024 * 3.6 / smem  (5 % imbalance, 6 steps a ticket)
// proves: atom_global_return
// scratch: int queue[1]
#include "common/cuda/launch.cuh"

constexpr int STATES = 8192, WALKERS = 1024;

__global__ void __launch_bounds__(WALKERS)
    walk(const int* __restrict__ successor, const int* __restrict__ steps, int* y, int* queue, int tasks) {
    constexpr int AHEAD = 8;  // steps, about the latency of an atomic; a ticket taken earlier would wait for the end of a long task
    __shared__ int table[STATES];
    __shared__ int next[2];  // a slow warp may still read one slot while the other is written, so one barrier per task is enough
    for (int i = threadIdx.x; i < STATES; i += WALKERS) table[i] = successor[i];
    __syncthreads();
    for (int task = blockIdx.x, slot = 0; task < tasks; task = next[slot], slot ^= 1) {
        size_t walker = size_t(task) * WALKERS + threadIdx.x;
        int at = walker % STATES, left = steps[task], ticket = 0;
        for (; left > AHEAD; left--) at = table[at];
        if (threadIdx.x == 0) ticket = gridDim.x + atomicAdd(queue, 1);  // in flight during the last steps
        for (; left > 0; left--) at = table[at];
        y[walker] = at;
        if (threadIdx.x == 0) next[slot] = ticket;
        __syncthreads();
    }
}

LAUNCH(const int* successor, const int* steps, int* y, int* queue, int tasks, cudaStream_t stream) {
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    if (cudaError_t code = cudaMemsetAsync(queue, 0, sizeof(int), stream)) return code;
    walk<<<sms, WALKERS, 0, stream>>>(successor, steps, y, queue, tasks);
    return cudaGetLastError();
}
