// Optimized: four small kernels in four streams share the GPU.
// predicts: baseline 0.269 ms = 4 * (4 * degree / sm_clock + 1e-6)  (4 cycles per FMA; 1 us from kernel to kernel)
// predicts: optimized 0.0702 ms = 4 * degree / sm_clock + 4e-6  (4 us for fork and join)
// proves: overlap >= 0.5
#include "ch11/shared_branches.cuh"
#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/launch.cuh"

PREPARE(void** state) {
    *state = new Branches<4>;
    return cudaGetLastError();
}

LAUNCH(const float* x, float* y, int points, int degree, void* state, cudaStream_t stream) {
    Branches<4>& branches = *static_cast<Branches<4>*>(state);
    const int blocks = ceil_div(points, THREADS);
    branches.fork(stream);
    chebyshev<1><<<blocks, THREADS, 0, branches.streams[0]>>>(x, y, points, degree);
    chebyshev<2><<<blocks, THREADS, 0, branches.streams[1]>>>(x, y + points, points, degree);
    chebyshev<3><<<blocks, THREADS, 0, branches.streams[2]>>>(x, y + 2 * size_t(points), points, degree);
    chebyshev<4><<<blocks, THREADS, 0, branches.streams[3]>>>(x, y + 3 * size_t(points), points, degree);
    branches.join(stream);
    return cudaGetLastError();
}

FINISH(void* state) {
    delete static_cast<Branches<4>*>(state);
    return cudaGetLastError();
}
