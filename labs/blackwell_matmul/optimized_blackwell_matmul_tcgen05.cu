// Optimized: tcgen05: one thread multiplies into tensor memory.
// expects: 2.1x, the 48 KB of a step take 768 cycles at 64 bytes a cycle; mma.sync takes 1640 at 1280 FMAs a cycle, as on Hopper
// proves: tcgen05_mma_f16_tf32
// proves: tcgen05_alloc
// proves: tcgen05_commit
// proves: tcgen05_ld
// proves: tcgen05_dealloc
// proves: fewer mma_sync_f16_bf16
// has: tma_load_tile
// has: spills == 0
#include "ch10/optimized_tcgen05.cu"
