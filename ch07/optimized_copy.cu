// Optimized: adjacent lanes copy adjacent floats: 4 sectors per request.
// predicts: baseline 0.374 ms = (4 + 32) * n / (1.5 * dram_copy)  (bytes per float through the L2, assumed 1.5 times as fast as DRAM)
// predicts: optimized 0.125 ms = (4 + 4) * n / dram_copy  (bytes per float through DRAM)
// predicts: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum = 0.125 x baseline
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum < 0.2 x baseline
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 8;  // floats per thread; 7 of its loads are in flight at once, 56 KB per SM of 2048 threads

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = blockIdx.x * THREADS * RUN + threadIdx.x;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k * THREADS;
        // One request of a warp: all 32 bytes of each of 4 sectors.
        if (i < n) y[i] = x[i];
    }
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
