// Optimized: a high-priority stream: its blocks take the next free SM.
// predicts: baseline urgent_latency_us 238 = 24e6 * (16 * degree / sm_clock + 1e-6) + 4e6 * (4 * urgent_degree / sm_clock + 2e-6) + 3
// predicts: optimized urgent_latency_us 47.1 = 4e6 * (8 * degree / sm_clock + 0.5e-6 + 17 * urgent_degree / sm_clock + 2e-6) + 3
// proves: overlap bulk urgent >= 0.9
#include "ch11/shared_branches.cuh"
#include "ch11/shared_urgent.cuh"
#include "common/cuda/launch.cuh"

struct Streams {
    Branches<1> bulk{0};
    Branches<1> urgent{highest_priority()};
};

PREPARE(void** state) {
    *state = new Streams;
    return cudaGetLastError();
}

LAUNCH(const float* x, const float* q, int64_t* stamps, float* y, float* r, int points, int degree, int urgent_points, int urgent_degree,
       void* state, cudaStream_t stream) {
    Streams& streams = *static_cast<Streams*>(state);
    launch_arrival(stamps, stream);
    streams.bulk.fork(stream);
    streams.urgent.fork(stream);
    bulk<<<ceil_div(points, BULK_THREADS), BULK_THREADS, 0, streams.bulk.streams[0]>>>(x, y, points, degree);
    launch_urgent(q, r, urgent_points, urgent_degree, stamps, streams.urgent.streams[0]);
    streams.bulk.join(stream);
    streams.urgent.join(stream);
    return cudaGetLastError();
}

FINISH(void* state) {
    delete static_cast<Streams*>(state);
    return cudaGetLastError();
}
