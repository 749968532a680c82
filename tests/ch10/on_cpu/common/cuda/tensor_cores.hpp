// What wgmma and tcgen05 have in common: an operand is read through its descriptor, as PTX ISA 9.7.15.5.1.2 and 9.7.16.4.1 say.
#pragma once
#include "common/cuda/mbarrier.cuh"
#include "cuda_bf16.h"

namespace on_cpu {
// 16 elements of a row of a K-major operand: 8 rows of 128 bytes, then the stride; bits 4 to 6 of the address are XORed with 7 to 9.
inline void read_row(float (&values)[16], uint64_t descriptor, int row) {
    const uint32_t start = (descriptor & 0x3FFF) << 4, stride = (descriptor >> 32 & 0x3FFF) << 4;
    for (int chunk = 0; chunk < 2; chunk++) {
        uint32_t at = start + row / 8 * stride + row % 8 * 128 + chunk * 16;
        at ^= (at >> 7 & 7) << 4;
        uint16_t bits[8];
        std::memcpy(bits, shared_pointer(at), sizeof bits);
        for (int i = 0; i < 8; i++) values[8 * chunk + i] = to_float(bits[i]);
    }
}
// 16 elements of a column of an MN-major operand: rows of 128 bytes, 8 of them to a stride; 64 columns to the leading offset.
inline void read_column(float (&values)[16], uint64_t descriptor, int column) {
    const uint32_t start = (descriptor & 0x3FFF) << 4, leading = (descriptor >> 16 & 0x3FFF) << 4,
                   stride = (descriptor >> 32 & 0x3FFF) << 4;
    for (int row = 0; row < 16; row++) {
        uint32_t at = start + column / 64 * leading + row / 8 * stride + row % 8 * 128 + column % 64 * 2;
        at ^= (at >> 7 & 7) << 4;
        uint16_t bits;
        std::memcpy(&bits, shared_pointer(at), sizeof bits);
        values[row] = to_float(bits);
    }
}
inline float dot(const float (&a)[16], const float (&b)[16]) {
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i] * b[i];
    return sum;
}
}  // namespace on_cpu
