// A request of four small dependent kernels beside a bulk kernel of many waves, and the stamps of the GPU's clock that tell its latency.
#pragma once
#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/clock.cuh"

constexpr int BULK_THREADS = 1024;  // two blocks fill an SM of 2048 threads, so nothing else fits beside them

__global__ void __launch_bounds__(BULK_THREADS) bulk(const float* __restrict__ x, float* __restrict__ y, int points, int degree) {
    const int i = blockIdx.x * BULK_THREADS + threadIdx.x;
    if (i < points) y[i] = polynomial<1>(x[i], degree);
}

// Runs before the fork: bulk and request may begin from here on.
__global__ void arrive(int64_t* stamps) { stamps[0] = global_time(); }

// Kernel KIND of the request: r becomes the product of the polynomials of the kinds 1 to KIND. The last one stamps the end of each block.
template <int KIND>
__global__ void urgent(const float* __restrict__ q, float* __restrict__ r, int points, int degree, int64_t* stamps) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < points) r[i] = (KIND == 1 ? 1 : r[i]) * polynomial<KIND>(q[i], degree);
    if (KIND < 4) return;
    __syncthreads();
    if (threadIdx.x == 0) stamps[1 + blockIdx.x] = global_time();
}

inline void launch_arrival(int64_t* stamps, cudaStream_t stream) { arrive<<<1, 1, 0, stream>>>(stamps); }

inline void launch_urgent(const float* q, float* r, int points, int degree, int64_t* stamps, cudaStream_t stream) {
    const int blocks = (points + THREADS - 1) / THREADS;
    urgent<1><<<blocks, THREADS, 0, stream>>>(q, r, points, degree, stamps);
    urgent<2><<<blocks, THREADS, 0, stream>>>(q, r, points, degree, stamps);
    urgent<3><<<blocks, THREADS, 0, stream>>>(q, r, points, degree, stamps);
    urgent<4><<<blocks, THREADS, 0, stream>>>(q, r, points, degree, stamps);
}
