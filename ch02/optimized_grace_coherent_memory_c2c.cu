// Optimized: zero-copy at every size, over NVLink-C2C.
// needs: c2c
// instead: ch02:grace_coherent_memory
// guess: 1.6x, both sides use C2C, and no copy has to start
// proves: calls cudaMemcpyAsync == 0
#include "ch02/shared_requests.cuh"

LAUNCH(const float* x, const float* w, float* y, int small, int small_rows, int large, int large_rows, int width, cudaStream_t stream) {
    const Layer layer{w, width};
    return for_each_request(x, y, small, small_rows, large, large_rows, width,
                            [&](const float* from, float* to, int rows) { return layer.in_place(from, to, rows, stream); });
}
