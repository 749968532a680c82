// Optimized: a store hides under products; last tiles split if it pays.
// predicts: baseline 37.0 ms = m * n * k * 36 / 256 / (sm_count * sm_clock) on h100    (36 L1 cycles for 256 products of a warp)
// predicts: optimized 0.181 ms = 2 * m * n * k / bf16 * 528 / 512 + 1.6e-6 on h100    (4 waves; only the last tile's store shows)
// scratch: float partial[132 * 128 * 256]
// scratch: int ready[132 * 2]
// proves: wgmma_f16_bf16
// proves: tma_multicast
// proves: tma_store
// proves: setmaxnreg_inc
// proves: atom_global_return
// has: spills == 0
#include "ch10/optimized_matmul.cu"
