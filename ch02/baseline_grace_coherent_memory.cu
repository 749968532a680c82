// Baseline: each request is copied to the device, and its results are copied back.
#include <algorithm>

#include "ch02/shared_requests.cuh"

PREPARE(const float* w, int small_rows, int large_rows, int width, void** state) {
    Layer* layer = new Layer{w, width};
    *state = layer;
    return layer->make(std::max(small_rows, large_rows));
}

LAUNCH(const float* x, float* y, int small, int small_rows, int large, int large_rows, int width, void* state, cudaStream_t stream) {
    const Layer& layer = *static_cast<Layer*>(state);
    return for_each_request(x, y, small, small_rows, large, large_rows, width,
                            [&](const float* from, float* to, int rows) { return layer.by_copies(from, to, rows, stream); });
}

FINISH(void* state) {
    Layer* layer = static_cast<Layer*>(state);
    const cudaError_t error = layer->drop();
    delete layer;
    return error;
}
