// Optimized: zero-copy below a measured size, copies above it.
// predicts: baseline 1.42 ms = small * (10e-6 + 8 * small_rows * width / h2d) + large * (8 * large_rows * width / h2d + 30e-6) on h100
// predicts: optimized 1.10 ms = small * (6e-6 + 16 * small_rows * width / h2d) + large * (8 * large_rows * width / h2d + 31e-6) on h100
// proves: calls cudaMemcpyAsync < 0.5 x baseline
#include <algorithm>

#include "ch02/shared_requests.cuh"
#include "common/cuda/fastest.cuh"

constexpr int CALLS = 8;  // of a try

struct Strategy {
    Layer layer;
    int64_t crossing;  // bytes: requests up to here are used in place
};

__global__ void tell(int64_t value, int64_t* to) { *to = value; }

// The largest request, doubled from one row on, up to which every size was as fast in place as by copies: on this GPU, behind this link.
cudaError_t measure(Strategy& strategy, int most_rows, cudaStream_t stream) {
    const Layer& layer = strategy.layer;
    const size_t bytes = sizeof(float) * most_rows * layer.width;
    float *from, *to, in_place, by_copies;
    if (cudaError_t error = cudaMallocHost(&from, bytes)) return error;
    if (cudaError_t error = cudaMallocHost(&to, bytes)) return error;
    if (cudaError_t error = cudaMemsetAsync(from, 0, bytes, stream)) return error;
    for (int rows = 1; rows <= most_rows; rows *= 2) {
        if (cudaError_t error = fastest([&] { return layer.in_place(from, to, rows, stream); }, CALLS, stream, &in_place)) return error;
        if (cudaError_t error = fastest([&] { return layer.by_copies(from, to, rows, stream); }, CALLS, stream, &by_copies)) return error;
        if (in_place > by_copies) break;
        strategy.crossing = int64_t(sizeof(float)) * rows * layer.width;
    }
    cudaFreeHost(from);
    return cudaFreeHost(to);
}

PREPARE(const float* w, int small_rows, int large_rows, int width, cudaStream_t stream, void** state) {
    Strategy* strategy = new Strategy{{w, width}, 0};
    *state = strategy;
    const int most_rows = std::max(small_rows, large_rows);
    if (cudaError_t error = strategy->layer.make(most_rows)) return error;
    return measure(*strategy, most_rows, stream);
}

LAUNCH(const float* x, float* y, int64_t* crossing, int small, int small_rows, int large, int large_rows, int width, void* state,
       cudaStream_t stream) {
    const Strategy& strategy = *static_cast<Strategy*>(state);
    tell<<<1, 1, 0, stream>>>(strategy.crossing, crossing);
    return for_each_request(x, y, small, small_rows, large, large_rows, width, [&](const float* from, float* to, int rows) {
        const bool is_small = int64_t(sizeof(float)) * rows * width <= strategy.crossing;
        return is_small ? strategy.layer.in_place(from, to, rows, stream) : strategy.layer.by_copies(from, to, rows, stream);
    });
}

FINISH(void* state) {
    Strategy* strategy = static_cast<Strategy*>(state);
    const cudaError_t error = strategy->layer.drop();
    delete strategy;
    return error;
}
