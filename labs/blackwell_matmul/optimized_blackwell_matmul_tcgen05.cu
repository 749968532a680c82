// Optimized: tcgen05: one thread multiplies into tensor memory.
// predicts: optimized = 0.468 x baseline  (cycles per K-step: 768 to load 48 KB at 64 bytes per cycle; mma.sync takes 1640, as on Hopper)
// proves: tcgen05_mma_f16_tf32
// proves: tcgen05_alloc
// proves: tcgen05_commit
// proves: tcgen05_ld
// proves: tcgen05_dealloc
// proves: fewer mma_sync_f16_bf16
// has: tma_load_tile
// has: spills == 0
#include "ch10/optimized_tcgen05.cu"
