// A chain of a hundred kernels, launched one by one and as a graph: the same answers, also when the values behind the pointers change.
// mkdir -p build && nvcc -std=c++17 -O3 -I. ch12/cuda_graphs.cu -o build/cuda_graphs && build/cuda_graphs
#include <cstring>
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch12/optimized_cuda_graphs.cu"

constexpr int ROWS = 256, COLS = 256, CELLS = ROWS * COLS, STEPS = 100;
constexpr float RATE = 0.2f;

// Milliseconds of `run` on `stream`.
template <typename Run>
float timed(cudaStream_t stream, Run run) {
    cudaEvent_t begin, end;
    float milliseconds;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, stream));
    CHECK(run());
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return milliseconds;
}

int main() {
    std::vector<float> start(CELLS), launched(CELLS), replayed(CELLS);
    float *x, *y, *other;
    void* graph;
    cudaStream_t stream;
    for (float** array : {&x, &y, &other}) CHECK(cudaMalloc(array, CELLS * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(prepare(x, y, other, ROWS, COLS, RATE, STEPS, stream, &graph));
    float one_by_one = 0, at_once = 0;
    for (int round = 1; round <= 2; round++) {  // the graph is the same in both, the temperatures are not
        for (int i = 0; i < CELLS; i++) start[i] = float(i * round % 1000) / 1000;
        CHECK(cudaMemcpy(x, start.data(), CELLS * sizeof(float), cudaMemcpyHostToDevice));
        one_by_one = timed(stream, [&] { return chain(x, y, other, ROWS, COLS, RATE, STEPS, stream); });
        CHECK(cudaMemcpy(launched.data(), y, CELLS * sizeof(float), cudaMemcpyDeviceToHost));
        CHECK(cudaMemset(y, 0xff, CELLS * sizeof(float)));  // NaN, so that old answers are no answers
        CHECK(cudaDeviceSynchronize());
        at_once = timed(stream, [&] { return launch(y, graph, stream); });
        CHECK(cudaMemcpy(replayed.data(), y, CELLS * sizeof(float), cudaMemcpyDeviceToHost));
        if (std::memcmp(launched.data(), replayed.data(), CELLS * sizeof(float)) || launched[COLS + 1] == start[COLS + 1]) {
            fprintf(stderr, "cuda_graphs: found other temperatures by the graph in round %d; expected those of the launches\n", round);
            return 1;
        }
    }
    printf("%d steps are right; %d launches %.3f ms, one graph %.3f ms\n", STEPS, STEPS, one_by_one, at_once);
    CHECK(finish(graph));
    CHECK(cudaStreamDestroy(stream));
    for (float* array : {x, y, other}) CHECK(cudaFree(array));
    return 0;
}
