// Optimized: a store hides under products; last tiles split if it pays.
// predicts: baseline 0.488 ms = 4 * 64 * 3648 / sm_clock + 16e-6 on h100    (4 waves of 64 steps, 3648 cycles each)
// predicts: optimized 0.181 ms = 2 * m * n * k / bf16 * 528 / 512 + 1.6e-6 on h100    (4 waves; only the last tile's store shows)
// predicts@remainder: baseline 0.610 ms = 5 * 64 * 3648 / sm_clock + 20e-6 on h100    (5 waves)
// predicts@remainder: optimized 0.192 ms = (272 * 64 + 66 * 8) * 4 * 128 * 256 * 64 / bf16 + 1.6e-6 on h100    (272 double tiles)
// scratch: float partial[132 * 128 * 256]
// scratch: int ready[132 * 2]
// proves: wgmma_f16_bf16
// proves: tma_multicast
// proves: tma_store
// proves: setmaxnreg_inc
// proves: atom_global_return
// has: spills == 0
#include "ch10/optimized_matmul.cu"
