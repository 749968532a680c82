// Baseline: the host reads each level's size, then launches that level.
// allows: sync
// scratch: int frontier[2 * nodes]
// scratch: int size[24]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, EDGES = 4, LEVELS = 24;

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

__global__ void expand(const int* edge, int* distance, const int* frontier, int* next, int* size, int level) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < size[level]) expand_node(frontier[i], edge, distance, next, size + level + 1, level);
}

PREPARE(void** state) { return cudaMallocHost(state, sizeof(int)); }  // pinned, so that the copy of the size needs no staging

LAUNCH(const int* edge, int* distance, int* frontier, int* size, int nodes, void* state, cudaStream_t stream) {
    if (size_t(nodes) * EDGES >= 1u << 31) return cudaErrorInvalidValue;  // edges are counted in an int
    int* found = static_cast<int*>(state);
    begin<<<ceil_div(nodes, THREADS) + 1, THREADS, 0, stream>>>(distance, frontier, size, nodes);
    *found = 1;
    for (int level = 0; *found && level + 1 < LEVELS; level++) {
        int *from = frontier + level % 2 * nodes, *next = frontier + (level + 1) % 2 * nodes;
        expand<<<ceil_div(*found, THREADS), THREADS, 0, stream>>>(edge, distance, from, next, size, level);
        if (cudaError_t code = cudaMemcpyAsync(found, size + level + 1, sizeof(int), cudaMemcpyDeviceToHost, stream)) return code;
        if (cudaError_t code = cudaStreamSynchronize(stream)) return code;
    }
    return cudaGetLastError();
}

FINISH(void* state) { return cudaFreeHost(state); }
