// What ch09/shared_mma.cuh does, in shuffles: where PTX says that each element of a fragment lies, and nothing taken from the side itself.
#pragma once

template <typename T>
__device__ const T* row_of(const void* row, int lane) {
    return reinterpret_cast<const T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(row), lane));
}

__device__ void ldmatrix(unsigned (&to)[4], const void* row) {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) to[i] = row_of<unsigned>(row, 8 * i + lane / 4)[lane % 4];
}

__device__ void ldmatrix_transposed(unsigned (&to)[4], const void* row) {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) {
        const unsigned first = row_of<unsigned short>(row, 8 * i + lane % 4 * 2)[lane / 4];
        const unsigned second = row_of<unsigned short>(row, 8 * i + lane % 4 * 2 + 1)[lane / 4];
        to[i] = first | second << 16;
    }
}

__device__ float element(unsigned pair, int which) { return __uint_as_float(which ? pair & 0xffff0000u : pair << 16); }

__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned* b) {
    const int lane = threadIdx.x % 32;
    for (int pair = 0; pair < 8; pair++) {  // columns 2 * pair and 2 * pair + 1 of a
        unsigned rows[2], cols[2];
        for (int i = 0; i < 2; i++) rows[i] = __shfl_sync(~0u, a[i + pair / 4 * 2], lane / 4 * 4 + pair % 4);
        for (int j = 0; j < 2; j++) cols[j] = __shfl_sync(~0u, b[pair / 4], (lane % 4 * 2 + j) * 4 + pair % 4);
        for (int i = 0; i < 4; i++) {
            for (int which = 0; which < 2; which++) c[i] = fmaf(element(rows[i / 2], which), element(cols[i % 2], which), c[i]);
        }
    }
}
