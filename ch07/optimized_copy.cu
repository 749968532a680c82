// Optimized: neighbouring lanes take neighbouring floats, 4 bytes apart: 4 sectors a request.
// expects: 3x, per float the baseline moves 4 + 32 bytes through the L2, this 4 + 4 through DRAM, taking the L2 to be 1.5 times as fast
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum < 0.2 x baseline
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 8;  // floats a thread; predicates let 7 of its loads fly at once: 56 KB for the 2048 threads of an SM

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = blockIdx.x * THREADS * RUN + threadIdx.x;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k * THREADS;
        // A warp's request: all 32 bytes of each of 4 sectors.
        if (i < n) y[i] = x[i];
    }
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
