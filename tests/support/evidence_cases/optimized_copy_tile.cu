// Optimized: tiles by TMA, as it says.
// proves: tma_load_tile in copy_tile
// proves: more /^SYNCS\./
// has: launches == 1
// has: mbarrier_expect_tx
// has: not tma_multicast
// has: registers <= 64
// has: spills == 0
#include "shared_tile.cuh"

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) { return launch_copy_tile(x, y, rows, cols, stream); }
