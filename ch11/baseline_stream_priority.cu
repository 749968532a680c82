// Baseline: the request's stream has the bulk's priority: its blocks wait until all bulk blocks were placed.
#include "ch11/shared_branches.cuh"
#include "ch11/shared_urgent.cuh"
#include "common/cuda/launch.cuh"

struct Streams {
    Branches<1> bulk{0};
    Branches<1> urgent{0};
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
