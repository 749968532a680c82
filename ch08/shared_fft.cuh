// The Fourier transform of launch_bounds: a block transforms a row of 4096 points in shared memory, in four stages.
#pragma once
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int POINTS = 4096;
constexpr int THREADS = POINTS / 8;  // each thread transforms eight points in each of the four stages

__device__ float2 add(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 subtract(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ float2 multiply(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

__device__ void transform_four(float2& v0, float2& v1, float2& v2, float2& v3) {
    float2 a = add(v0, v2), b = subtract(v0, v2), c = add(v1, v3), d = subtract(v1, v3);
    v0 = add(a, c);
    v1 = {b.x + d.y, b.y - d.x};
    v2 = subtract(a, c);
    v3 = {b.x - d.y, b.y + d.x};
}

__device__ void transform_eight(float2 (&v)[8]) {
    const float half = 0.70710678f;  // square root of 1/2
    transform_four(v[0], v[2], v[4], v[6]);
    transform_four(v[1], v[3], v[5], v[7]);
    float2 odd[4] = {v[1], multiply(v[3], {half, -half}), {v[5].y, -v[5].x}, multiply(v[7], {-half, -half})};
    float2 even[4] = {v[0], v[2], v[4], v[6]};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v[k] = add(even[k], odd[k]);
        v[k + 4] = subtract(even[k], odd[k]);
    }
}

// Index of a point in shared memory. A gap after every 16 points spreads strides of powers of 4 over the banks.
__device__ int slot(int i) { return i + i / 16; }

// The row of this block. Each side calls it in a kernel of its own.
__device__ __forceinline__ void transform_row(const float2* __restrict__ x, float2* __restrict__ y) {
    __shared__ float2 points[POINTS + POINTS / 16];  // 34 KB
    const int t = threadIdx.x;
    x += blockIdx.x * POINTS;
    y += blockIdx.x * POINTS;
    float2 v[8];
#pragma unroll
    for (int r = 0; r < 8; r++) v[r] = x[t + r * THREADS];
#pragma unroll
    for (int span = 1;; span *= 8) {  // combines eight transforms of `span` points into one of 8 * span
        const int k = t % span;
        if (span > 1) {
            float2 w, power;
            sincospif(-0.25f * k / span, &w.y, &w.x);
            power = w;
#pragma unroll
            for (int r = 1; r < 8; r++, power = multiply(power, w)) v[r] = multiply(v[r], power);
        }
        transform_eight(v);
        if (span == THREADS) break;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 8; r++) points[slot((t - k) * 8 + k + r * span)] = v[r];
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 8; r++) v[r] = points[slot(t + r * THREADS)];
    }
#pragma unroll
    for (int r = 0; r < 8; r++) y[t + r * THREADS] = v[r];
}
