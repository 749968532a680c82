// What the sides of nvlink_bidirectional prepare: two GPUs that use each other's memory, and a parked block in the neighbour's.
#pragma once
#include "ch02/shared_neighbour.cuh"

struct Swap {
    Neighbour neighbour;
    float* parked;

    cudaError_t make(const float* block, const float* w, int rows, int width, cudaStream_t caller) {
        const size_t bytes = sizeof(float) * rows * width;
        if (cudaError_t error = neighbour.make(w, rows, width, caller)) return error;
        if (cudaError_t error = neighbour.connect()) return error;
        On on(neighbour.there);
        if (cudaError_t error = cudaMalloc(&parked, bytes)) return error;
        if (cudaError_t error = cudaMemcpyPeerAsync(parked, neighbour.there, block, neighbour.home, bytes, caller)) return error;
        return cudaStreamSynchronize(caller);
    }

    // From this GPU to the neighbour.
    cudaError_t send(const float* x, size_t bytes, cudaStream_t stream) const {
        return cudaMemcpyPeerAsync(neighbour.x, neighbour.there, x, neighbour.home, bytes, stream);
    }

    // From the neighbour to this GPU.
    cudaError_t fetch(float* fetched, size_t bytes, cudaStream_t stream) const {
        return cudaMemcpyPeerAsync(fetched, neighbour.home, parked, neighbour.there, bytes, stream);
    }

    cudaError_t drop() const {
        cudaFree(parked);
        return neighbour.drop();
    }
};
