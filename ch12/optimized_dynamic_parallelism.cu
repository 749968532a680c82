// Optimized: a level launches the next one itself, by a tail launch.
// nvcc: -rdc=true
// predicts: baseline 0.25 ms = 15 * (2 * launch + 9.4e-6)  (15 levels; 9.4 us for a kernel, the copy's end and the wait, assumed)
// predicts: optimized 0.15 ms = 15 * (6e-6 + 4e-6)  (a tail launch 6 us, a kernel 4 us, both assumed) on h100
// proves: launches <= 2
// proves: calls cudaStreamSynchronize == 0
// proves: /\bCALL\.ABS\.NOINC\b/ in expand
// scratch: int frontier[2 * nodes]
// scratch: int size[24]
// scratch: int done[24]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256, EDGES = 4, LEVELS = 24;

__global__ void begin(int* distance, int* frontier, int* size, int* done, int nodes) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < nodes) distance[i] = i ? -1 : 0;
    if (i == 0) frontier[0] = 0;
    if (i < LEVELS) size[i] = i == 0, done[i] = 0;
}

// A thread per node of the frontier: its neighbours that nobody has found yet are the next frontier.
__device__ void expand_node(int node, const int* edge, int* distance, int* next, int* next_size, int level) {
    for (int e = 0; e < EDGES; e++) {
        int neighbour = edge[node * EDGES + e];
        if (atomicCAS(distance + neighbour, -1, level + 1) == -1) next[atomicAdd(next_size, 1)] = neighbour;
    }
}

__global__ void expand(const int* edge, int* distance, int* frontier, int* size, int* done, int level, int nodes) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    int *from = frontier + level % 2 * nodes, *next = frontier + (level + 1) % 2 * nodes;
    if (i < size[level]) expand_node(from[i], edge, distance, next, size + level + 1, level);
    __threadfence();  // this thread's nodes are visible before its block is counted
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(done + level, 1) != int(gridDim.x) - 1 || level + 2 >= LEVELS) return;
    // The last block: all blocks are counted, so the size is final. A tail launch starts once this grid has completed.
    int found = atomicAdd(size + level + 1, 0);
    if (found)
        expand<<<ceil_div(found, THREADS), THREADS, 0, cudaStreamTailLaunch>>>(edge, distance, frontier, size, done, level + 1, nodes);
}

LAUNCH(const int* edge, int* distance, int* frontier, int* size, int* done, int nodes, cudaStream_t stream) {
    if (size_t(nodes) * EDGES >= 1u << 31) return cudaErrorInvalidValue;  // edges are counted in an int
    begin<<<ceil_div(nodes, THREADS) + 1, THREADS, 0, stream>>>(distance, frontier, size, done, nodes);
    expand<<<1, THREADS, 0, stream>>>(edge, distance, frontier, size, done, 0, nodes);
    return cudaGetLastError();
}
