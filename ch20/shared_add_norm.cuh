// s = x + r in BF16, and y = s / rms(s) * w: one block per row, in packs of WIDTH elements. A thread keeps its first KEPT packs of s in
// registers; it reads the others again for y.
// A Pack is aligned to its size: rows must be whole packs, and arrays start at multiples of one.
#pragma once
#include <cuda_bf16.h>
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

template <int WIDTH>
struct alignas(2 * WIDTH) Pack {
    __nv_bfloat16 of[WIDTH];
};

template <int WIDTH>
struct Word;  // as many bytes as a Pack, which one instruction loads
template <>
struct Word<1> {
    using type = unsigned short;
};
template <>
struct Word<2> {
    using type = unsigned;
};
template <>
struct Word<4> {
    using type = uint2;
};
template <>
struct Word<8> {
    using type = uint4;
};

template <int WIDTH>
__device__ Pack<WIDTH> load(const Pack<WIDTH>* from) {
    typename Word<WIDTH>::type word = *(const typename Word<WIDTH>::type*)from;
    Pack<WIDTH> pack;
    memcpy(&pack, &word, sizeof(word));
    return pack;
}

template <int THREADS>
__device__ float sum_over_block(float value) {
    __shared__ float sums[THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp) sum += sums[warp];
    return sum;
}

// The sum of two packs, and what its squares add up to.
template <int WIDTH>
__device__ Pack<WIDTH> add(const Pack<WIDTH>& a, const Pack<WIDTH>& b, float& squares) {
    Pack<WIDTH> sum;
    for (int j = 0; j < WIDTH; ++j) {
        sum.of[j] = __float2bfloat16(__bfloat162float(a.of[j]) + __bfloat162float(b.of[j]));
        float value = __bfloat162float(sum.of[j]);
        squares += value * value;
    }
    return sum;
}

template <int WIDTH>
__device__ Pack<WIDTH> scale(const Pack<WIDTH>& s, const Pack<WIDTH>& w, float factor) {
    Pack<WIDTH> y;
    for (int j = 0; j < WIDTH; ++j) y.of[j] = __float2bfloat16(__bfloat162float(s.of[j]) * factor * __bfloat162float(w.of[j]));
    return y;
}

template <int THREADS, int WIDTH, int KEPT>
__global__ void add_norm(const Pack<WIDTH>* x, const Pack<WIDTH>* r, const Pack<WIDTH>* w, Pack<WIDTH>* s, Pack<WIDTH>* y, int packs,
                         float eps) {
    size_t row = size_t(blockIdx.x) * packs;
    Pack<WIDTH> kept[KEPT ? KEPT : 1];
    float squares = 0;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        int i = k * THREADS + threadIdx.x;
        if (i < packs) s[row + i] = kept[k] = add<WIDTH>(load<WIDTH>(x + row + i), load<WIDTH>(r + row + i), squares);
    }
    for (int i = KEPT * THREADS + threadIdx.x; i < packs; i += THREADS)
        s[row + i] = add<WIDTH>(load<WIDTH>(x + row + i), load<WIDTH>(r + row + i), squares);
    float factor = rsqrtf(sum_over_block<THREADS>(squares) / (packs * WIDTH) + eps);
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        int i = k * THREADS + threadIdx.x;
        if (i < packs) y[row + i] = scale<WIDTH>(kept[k], load<WIDTH>(w + i), factor);
    }
    for (int i = KEPT * THREADS + threadIdx.x; i < packs; i += THREADS)
        y[row + i] = scale<WIDTH>(load<WIDTH>(s + row + i), load<WIDTH>(w + i), factor);
}

template <int THREADS, int WIDTH, int KEPT>
cudaError_t launch_add_norm(const __nv_bfloat16* x, const __nv_bfloat16* r, const __nv_bfloat16* w, __nv_bfloat16* s, __nv_bfloat16* y,
                            int rows, int cols, float eps, cudaStream_t stream) {
    using P = Pack<WIDTH>;
    if (cols % WIDTH) return cudaErrorInvalidValue;  // rows of whole packs
    if (!aligned(sizeof(P), x, r, w, s, y)) return cudaErrorMisalignedAddress;
    add_norm<THREADS, WIDTH, KEPT><<<rows, THREADS, 0, stream>>>((const P*)x, (const P*)r, (const P*)w, (P*)s, (P*)y, cols / WIDTH, eps);
    return cudaGetLastError();
}
