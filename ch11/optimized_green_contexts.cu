// Optimized: a green context: 32 SMs for the request alone.
// predicts: baseline urgent_latency_us 238 = 24e6 * (16 * degree / sm_clock + 1e-6) + 4e6 * (4 * urgent_degree / sm_clock + 2e-6) + 3
// predicts: optimized urgent_latency_us 15.1 = 4e6 * (4 * urgent_degree / sm_clock + 2e-6) + 3  (the request alone; 3 us for the fork)
// proves: overlap bulk urgent >= 0.5
// reason: the baseline's request waits for all waves of the bulk kernel, however many there are
#include "ch11/shared_branches.cuh"
#include "ch11/shared_green_contexts.cuh"
#include "ch11/shared_urgent.cuh"

constexpr unsigned URGENT_SMS = 32;  // a quarter of a Hopper; a multiple of 8, as compute capability 9.0 wants it

struct Parts {
    Part urgent, bulk;
    cudaEvent_t forked, urgent_done, bulk_done;
};

PREPARE(void** state) {
    Parts* parts = new Parts;
    *state = parts;
    for (cudaEvent_t* event : {&parts->forked, &parts->urgent_done, &parts->bulk_done})
        cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    return split_sms(URGENT_SMS, parts->urgent, parts->bulk);
}

LAUNCH(const float* x, const float* q, int64_t* stamps, float* y, float* r, int points, int degree, int urgent_points, int urgent_degree,
       void* state, cudaStream_t stream) {
    Parts& parts = *static_cast<Parts*>(state);
    launch_arrival(stamps, stream);
    cudaEventRecord(parts.forked, stream);
    cudaStreamWaitEvent(parts.bulk.stream, parts.forked, 0);
    cudaStreamWaitEvent(parts.urgent.stream, parts.forked, 0);
    bulk<<<ceil_div(points, BULK_THREADS), BULK_THREADS, 0, parts.bulk.stream>>>(x, y, points, degree);
    launch_urgent(q, r, urgent_points, urgent_degree, stamps, parts.urgent.stream);
    cudaEventRecord(parts.bulk_done, parts.bulk.stream);
    cudaEventRecord(parts.urgent_done, parts.urgent.stream);
    cudaStreamWaitEvent(stream, parts.bulk_done, 0);
    cudaStreamWaitEvent(stream, parts.urgent_done, 0);
    return cudaGetLastError();
}

FINISH(void* state) {
    Parts* parts = static_cast<Parts*>(state);
    for (cudaEvent_t event : {parts->forked, parts->urgent_done, parts->bulk_done}) cudaEventDestroy(event);
    parts->urgent.destroy();
    parts->bulk.destroy();
    delete parts;
    return cudaGetLastError();
}
