// Persistent blocks that take tasks of different lengths from an atomic queue; the host walks a few of them to check.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch12/atomic_work_queue.cu -o build/atomic_work_queue && build/atomic_work_queue
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch12/optimized_work_queue.cu"

constexpr int TASKS = 4096;

int main() {
    std::vector<int> next(STATES), lengths(TASKS), found(size_t(TASKS) * WALKERS);
    for (int i = 0; i < STATES; i++) next[i] = (i * 4093 + 1) % STATES;  // a permutation: 4093 is odd
    for (int t = 0; t < TASKS; t++) lengths[t] = t % 16 == 5 ? 1024 : 64;
    int *successor, *steps, *y, *queue;
    cudaStream_t stream;
    CHECK(cudaMalloc(&successor, STATES * sizeof(int)));
    CHECK(cudaMalloc(&steps, TASKS * sizeof(int)));
    CHECK(cudaMalloc(&y, found.size() * sizeof(int)));
    CHECK(cudaMalloc(&queue, sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpy(successor, next.data(), STATES * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(steps, lengths.data(), TASKS * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(y, 0xff, found.size() * sizeof(int)));  // -1: no walker ends there
    CHECK(cudaDeviceSynchronize());
    CHECK(launch(successor, steps, y, queue, TASKS, stream));
    int taken;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(found.data(), y, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&taken, queue, sizeof(int), cudaMemcpyDeviceToHost));
    for (size_t walker = 0; walker < found.size(); walker += 37) {  // 37 and 1024 have no factor in common: every task is looked at
        int at = int(walker % STATES);
        for (int left = lengths[walker / WALKERS]; left > 0; left--) at = next[at];
        if (found[walker] != at) {
            fprintf(stderr, "atomic_work_queue: walker %zu is at %d; expected %d\n", walker, found[walker], at);
            return 1;
        }
    }
    // Each block's first task needs no ticket, and its last ticket finds no task: one ticket a task.
    printf("%d tasks are right, %d tickets were taken\n", TASKS, taken);
    CHECK(cudaStreamDestroy(stream));
    for (int* array : {successor, steps, y, queue}) CHECK(cudaFree(array));
    return taken == TASKS ? 0 : 1;
}
