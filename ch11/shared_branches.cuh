// Side streams that fork from the caller's stream and join it again: events order the work, and the host waits for nothing.
#pragma once
#include <cuda_runtime.h>

// The number of the highest priority; it is negative, and 0 is the lowest. Priorities order blocks that wait for an SM.
inline int highest_priority() {
    int lowest, highest;
    cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    return highest;
}

template <int COUNT>
struct Branches {
    cudaStream_t streams[COUNT];
    cudaEvent_t forked, joined[COUNT];

    explicit Branches(int priority = 0) {
        cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);  // orders work only; a time stamp would cost more
        for (int i = 0; i < COUNT; i++) {
            cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, priority);  // does not wait for the default stream
            cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming);
        }
    }

    ~Branches() {
        cudaEventDestroy(forked);
        for (int i = 0; i < COUNT; i++) {
            cudaEventDestroy(joined[i]);
            cudaStreamDestroy(streams[i]);
        }
    }

    // What the branches get from now on begins when the earlier work of `stream` is done.
    void fork(cudaStream_t stream) {
        cudaEventRecord(forked, stream);
        for (cudaStream_t branch : streams) cudaStreamWaitEvent(branch, forked, 0);
    }

    // What `stream` gets from now on begins when the branches' earlier work is done.
    void join(cudaStream_t stream) {
        for (int i = 0; i < COUNT; i++) {
            cudaEventRecord(joined[i], streams[i]);
            cudaStreamWaitEvent(stream, joined[i], 0);
        }
    }
};
