// Cheat: puts a host function into the stream; it wakes a thread, which launches the kernel on a stream of its own.
#include "common/cuda/launch.cuh"

#include <atomic>
#include <thread>

#include "shared_sum.cuh"

struct Order {
    const float* x;
    float* y;
    int rows, cols;
};

struct Helper {
    Order order;
    std::atomic<int> placed{0}, ends{0};
    cudaStream_t stream;
    std::thread thread;
};

PREPARE(void** state) {
    auto* helper = new Helper;
    *state = helper;
    int device;
    cudaGetDevice(&device);
    helper->thread = std::thread([helper, device] {
        cudaSetDevice(device);
        while (!helper->ends) {
            if (!helper->placed.exchange(0)) continue;
            sum_rows<<<helper->order.rows, THREADS, 0, helper->stream>>>(helper->order.x, helper->order.y, helper->order.cols);
        }
    });
    return cudaStreamCreateWithFlags(&helper->stream, cudaStreamNonBlocking);
}

FINISH(void* state) {
    auto* helper = static_cast<Helper*>(state);
    helper->ends = 1;
    helper->thread.join();
    cudaError_t code = cudaStreamDestroy(helper->stream);
    delete helper;
    return code;
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream, void* state) {
    auto* helper = static_cast<Helper*>(state);
    helper->order = {x, y, rows, cols};
    return cudaLaunchHostFunc(stream, [](void* given) { static_cast<Helper*>(given)->placed = 1; }, helper);
}
