// Connected components by a graph that repeats its body until nothing changes; a flood fill on the host checks them.
// mkdir -p build && nvcc -I. ch12/cuda_graphs_conditional.cu -o build/cuda_graphs_conditional && build/cuda_graphs_conditional
#include <random>
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch12/optimized_cuda_graphs_conditional.cu"

constexpr int ROWS = 200, COLS = 300, CELLS = ROWS * COLS;

// The smallest index in the component of each open cell, CELLS for a closed one: cells are visited in order, so the first is the smallest.
std::vector<int> components(const std::vector<float>& x) {
    std::vector<int> found(CELLS, CELLS), stack;
    for (int first = 0; first < CELLS; first++) {
        if (x[first] < DENSITY && found[first] == CELLS) stack.push_back(first), found[first] = first;
        while (!stack.empty()) {
            const int i = stack.back(), r = i / COLS, c = i % COLS;
            stack.pop_back();
            for (auto [near, inside] : {std::pair(i - COLS, r > 0), {i + COLS, r < ROWS - 1}, {i - 1, c > 0}, {i + 1, c < COLS - 1}})
                if (inside && x[near] < DENSITY && found[near] == CELLS) stack.push_back(near), found[near] = first;
        }
    }
    return found;
}

int main() {
    float* x;
    int *label, *other, *rounds, *changed;
    void* graph;
    cudaStream_t stream;
    CHECK(cudaMalloc(&x, CELLS * sizeof(float)));
    for (int** array : {&label, &other}) CHECK(cudaMalloc(array, CELLS * sizeof(int)));
    for (int** array : {&rounds, &changed}) CHECK(cudaMalloc(array, sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(prepare(label, rounds, other, changed, ROWS, COLS, &graph));
    std::vector<float> cells(CELLS);
    std::vector<int> found(CELLS);
    for (int seed = 1; seed <= 3; seed++) {  // the same graph, another number of rounds for each grid
        std::minstd_rand random(seed);
        for (float& cell : cells) cell = std::uniform_real_distribution<float>()(random);
        int count;
        CHECK(cudaMemcpy(x, cells.data(), CELLS * sizeof(float), cudaMemcpyHostToDevice));
        CHECK(launch(x, label, rounds, changed, ROWS, COLS, graph, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(found.data(), label, CELLS * sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(&count, rounds, sizeof(int), cudaMemcpyDeviceToHost));
        if (found != components(cells)) {
            fprintf(stderr, "cuda_graphs_conditional: found other components than the flood fill for seed %d\n", seed);
            return 1;
        }
        printf("components of %d cells are right after %d rounds in one launch\n", CELLS, count);
    }
    CHECK(finish(graph));
    CHECK(cudaStreamDestroy(stream));
    for (void* array : {(void*)x, (void*)label, (void*)other, (void*)rounds, (void*)changed}) CHECK(cudaFree(array));
    return 0;
}
