// Products of bf16 on CUDA cores, which multiply and add in fp32: eight numbers at a time, 16 bytes.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"

using Element = __nv_bfloat16;
constexpr int EIGHT = 8;  // of which k is a multiple, so rows stay aligned to 16 bytes

__device__ uint4 load_eight(const Element* from) { return *reinterpret_cast<const uint4*>(from); }

// A bf16 is the upper half of the float of its value. Of the two in a 32-bit word, the first is the lower half.
__device__ void unpack(float (&to)[EIGHT], uint4 eight) {
    const unsigned pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[2 * i] = __uint_as_float(pairs[i] << 16);
        to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
    }
}

// Adds eight products to `sum`: 16 conversions, 8 FMAs.
__device__ float add_products(float sum, uint4 a, uint4 b) {
    float x[EIGHT], y[EIGHT];
    unpack(x, a);
    unpack(y, b);
#pragma unroll
    for (int i = 0; i < EIGHT; i++) sum = fmaf(x[i], y[i], sum);
    return sum;
}
