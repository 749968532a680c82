// Baseline: the host reads the flag after each round, then goes on.
// allows: grid, sync
// scratch: int other[rows * cols]
// scratch: int changed[1]
// scratch: int again[1]
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // cells per block, one per thread
constexpr float DENSITY = 0.5f;

__global__ void begin(const float* __restrict__ x, int* label, int* rounds, int* changed, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (i == 0) *rounds = *changed = 0;
    if (r < rows && c < cols) label[i] = x[i] < DENSITY ? i : rows * cols;
}

// One sweep: an open cell takes the smallest label among itself and its four neighbours; a closed one keeps rows * cols.
__global__ void sweep(const int* __restrict__ from, int* __restrict__ to, int* changed, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x, i = r * cols + c;
    if (r >= rows || c >= cols) return;
    int old = from[i], best = old;
    if (old < rows * cols) {
        if (r > 0) best = min(best, from[i - cols]);
        if (r < rows - 1) best = min(best, from[i + cols]);
        if (c > 0) best = min(best, from[i - 1]);
        if (c < cols - 1) best = min(best, from[i + 1]);
    }
    to[i] = best;
    if (changed && best != old) *changed = 1;  // every writer writes the same value
}

__global__ void decide(int* changed, int* again, int* rounds) {
    *again = *changed;
    *changed = 0;
    *rounds += 1;
}

PREPARE(void** state) { return cudaMallocHost(state, sizeof(int)); }  // pinned, so that the copy of the flag needs no staging

LAUNCH(const float* x, int* label, int* rounds, int* other, int* changed, int* again, int rows, int cols, void* state,
       cudaStream_t stream) {
    if (size_t(rows) * cols >= 1u << 31) return cudaErrorInvalidValue;  // labels and indices are int
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), block(WIDE, HIGH);
    int* flag = static_cast<int*>(state);
    begin<<<grid, block, 0, stream>>>(x, label, rounds, changed, rows, cols);
    do {
        sweep<<<grid, block, 0, stream>>>(label, other, nullptr, rows, cols);
        sweep<<<grid, block, 0, stream>>>(other, label, changed, rows, cols);
        decide<<<1, 1, 0, stream>>>(changed, again, rounds);
        if (cudaError_t code = cudaMemcpyAsync(flag, again, sizeof(int), cudaMemcpyDeviceToHost, stream)) return code;
        if (cudaError_t code = cudaStreamSynchronize(stream)) return code;
    } while (*flag);
    return cudaGetLastError();
}

FINISH(void* state) { return cudaFreeHost(state); }
