// Optimized: the row stays in registers: no gain, as DRAM is the limit.
// predicts: baseline 0.19 ms = 8 * rows * cols / dram_triad + 2 * rows * cols / l2 on h100  (nothing hides the second read: the most)
// predicts: optimized 0.174 ms = 8 * rows * cols / dram_triad on h100
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum < 0.8 x baseline
// has: ld_128bit
// has: spills == 0
#include "shared_add_norm.cuh"

constexpr int THREADS = 256;  // tries: 64 128 256 512 1024
constexpr int WIDTH = 8;      // tries: 1 2 4 8
constexpr int KEPT = 2;       // tries: 0 1 2 4 8 16

LAUNCH(const __nv_bfloat16* x, const __nv_bfloat16* r, const __nv_bfloat16* w, __nv_bfloat16* s, __nv_bfloat16* y, int rows, int cols,
       float eps, cudaStream_t stream) {
    return launch_add_norm<THREADS, WIDTH, KEPT>(x, r, w, s, y, rows, cols, eps, stream);
}
