// Breadth-first search whose kernels launch the next level themselves; a search on the host checks the distances.
// mkdir -p build && nvcc -rdc=true -arch=native -I. ch12/dynamic_parallelism.cu -o build/dynamic_parallelism && build/dynamic_parallelism
#include <algorithm>
#include <random>
#include <vector>

#include "ch06/shared_check.cuh"
#include "ch12/optimized_dynamic_parallelism.cu"

constexpr int NODES = 1 << 14;

std::vector<int> distances(const std::vector<int>& edge) {
    std::vector<int> found(NODES, -1), queue = {0};
    found[0] = 0;
    for (size_t head = 0; head < queue.size(); head++) {
        const int node = queue[head];
        for (int e = 0; e < EDGES; e++) {
            const int neighbour = edge[node * EDGES + e];
            if (found[neighbour] < 0) found[neighbour] = found[node] + 1, queue.push_back(neighbour);
        }
    }
    return found;
}

int main() {
    std::minstd_rand random(1);
    std::vector<int> edges(NODES * EDGES), found(NODES);
    for (int& edge : edges) edge = std::uniform_int_distribution<int>(0, NODES - 1)(random);
    int *edge, *distance, *frontier, *size, *done;
    cudaStream_t stream;
    CHECK(cudaMalloc(&edge, edges.size() * sizeof(int)));
    CHECK(cudaMalloc(&distance, NODES * sizeof(int)));
    CHECK(cudaMalloc(&frontier, 2 * NODES * sizeof(int)));
    for (int** array : {&size, &done}) CHECK(cudaMalloc(array, LEVELS * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpy(edge, edges.data(), edges.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(launch(edge, distance, frontier, size, done, NODES, stream));
    CHECK(cudaStreamSynchronize(stream));  // waits for what kernels have launched, too
    CHECK(cudaMemcpy(found.data(), distance, NODES * sizeof(int), cudaMemcpyDeviceToHost));
    if (found != distances(edges)) {
        fprintf(stderr, "dynamic_parallelism: found other distances than the search on the host\n");
        return 1;
    }
    printf("%d distances are right; the farthest node is %d levels away\n", NODES, *std::max_element(found.begin(), found.end()));
    CHECK(cudaStreamDestroy(stream));
    for (int* array : {edge, distance, frontier, size, done}) CHECK(cudaFree(array));
    return 0;
}
