// Optimized: the table lies in the GPU's own memory (HBM).
// predicts: baseline 21.4 ms = 4 * bags * per_bag * width / h2d on h100  (each row that is looked up crosses PCIe)
// predicts: optimized 0.347 ms = 4 * bags * per_bag * (width + 1) / dram_read + 4 * bags * width / dram_write on h100
// predicts@l2: baseline 5.35 ms = 4 * bags * per_bag * width / h2d on h100  (the L2 keeps nothing of the host's memory: assumed)
// predicts@l2: optimized 0.0345 ms = 4 * bags * per_bag * (width + 1) / l2 + 4 * bags * width / l2_write on h100
// reason: HBM reads 64 times as fast as PCIe 5 carries, and the L2 is faster still
// proves: counter dram__bytes_read.sum > 4 x baseline
#include "ch02/shared_embedding_bag.cuh"

LAUNCH(const float* table, const int* ids, float* y, int bags, int per_bag, int width, cudaStream_t stream) {
    return launch_bags(table, ids, y, bags, per_bag, width, stream);
}
