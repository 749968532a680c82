// The kernel of this chapter: Chebyshev polynomials by their recurrence, a chain of dependent FMAs per thread, so its time can be counted.
#pragma once

constexpr int THREADS = 128;  // per block: 4 warps, one per scheduler of an SM

// P of `degree` at x, from P(0) = 1 and P(k + 1) = 2 x P(k) - P(k - 1). The kinds 1 to 4 differ in P(1). An FMA takes 4 cycles.
template <int KIND>
__device__ float polynomial(float x, int degree) {
    const float twice = 2 * x;
    float before = 1, last = KIND == 1 ? x : KIND == 2 ? twice : KIND == 3 ? twice - 1 : twice + 1;
    if (degree == 0) return before;
#pragma unroll 16
    for (int k = 1; k < degree; k++) {
        const float next = fmaf(twice, last, -before);
        before = last;
        last = next;
    }
    return last;
}

// y = P(x)
template <int KIND>
__global__ void chebyshev(const float* __restrict__ x, float* __restrict__ y, int points, int degree) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < points) y[i] = polynomial<KIND>(x[i], degree);
}

// y = u P(x)
template <int KIND>
__global__ void times_chebyshev(const float* __restrict__ x, const float* __restrict__ u, float* __restrict__ y, int points, int degree) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < points) y[i] = u[i] * polynomial<KIND>(x[i], degree);
}
