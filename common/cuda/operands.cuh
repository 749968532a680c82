// Operands of wgmma and tcgen05: the swizzled layout of a tile in shared memory, and the descriptors that encode the layout.
//
// All functions are constexpr and run on the host and on any GPU. The instructions that use the results need sm_90a or sm_100a.
#pragma once
#include <cstdint>

// A tile has rows of 128 bytes in the 128-byte swizzle. The TMA loads and stores this layout, and tensor cores read it in place.
constexpr int SWIZZLE_ROW = 128;      // bytes per row of a tile: 64 bf16
constexpr int SWIZZLE_PERIOD = 1024;  // bytes until the pattern repeats: 8 rows. A tile's address must be a multiple of it
constexpr int CHUNK = 16;             // bytes that the swizzle moves as one unit

// The byte offset in a tile of 16-byte chunk `chunk` (0 to 7) of row `row`.
// The swizzle XORs address bits 4 to 6, the chunk, with address bits 7 to 9, the row modulo 8.
// The same chunk of 8 consecutive rows therefore lies in 8 different groups of four banks: reading a column has no bank conflict.
// CUDA driver API, CU_TENSOR_MAP_SWIZZLE_128B; PTX ISA 9.7.15.5.1.2 and 9.7.16.3.
__host__ __device__ constexpr uint32_t swizzled(uint32_t row, uint32_t chunk) { return row * SWIZZLE_ROW + ((chunk ^ row % 8) * CHUNK); }

// The descriptor fields that wgmma and tcgen05 share, for a K-major operand at shared-memory address `address` (shared_address).
// PTX ISA 9.7.15.5.1.2 and 9.7.16.4.1. Three fields of 14 bits, in units of 16 bytes:
//   from bit 0   the start address;
//   from bit 16  the leading-dimension offset: 1, and ignored, because the rows are swizzled;
//   from bit 32  the stride from 8 rows to the next 8 rows: 1024 bytes.
// The base offset (from bit 49) is 0, which requires that the tile begins on a multiple of 1024 bytes.
__host__ __device__ constexpr uint64_t operand_fields(uint32_t address) {
    return uint64_t((address & 0x3FFFF) >> 4) | uint64_t(1) << 16 | uint64_t(SWIZZLE_PERIOD >> 4) << 32;
}

// The matrix descriptor of wgmma (sm_90a). PTX ISA 9.7.15.5.1.2: the value 1 in the two bits from bit 62 selects the 128-byte swizzle.
// The next K-step of 16 bf16 begins at address + 32, within the swizzled row.
// No re-swizzling is needed: the hardware applies the XOR to address bits, and the tile's base has not moved.
__host__ __device__ constexpr uint64_t wgmma_operand(uint32_t address) { return operand_fields(address) | uint64_t(1) << 62; }

// The matrix descriptor of wgmma for an MN-major operand: K runs down the rows of the tile, and a row holds 64 elements of N (sm_90a).
// PTX ISA 9.7.15.5.1.2. N goes on in the next panel of 64 columns, `panel` bytes further: the leading-dimension offset from bit 16.
// The stride from 8 rows to the next 8 rows is 1024 bytes. The next K-step of 16 rows begins at address + 2048.
__host__ __device__ constexpr uint64_t wgmma_rows_operand(uint32_t address, uint32_t panel) {
    return (wgmma_operand(address) & ~(uint64_t(0x3FFF) << 16)) | uint64_t(panel >> 4) << 16;
}

// The shared-memory descriptor of tcgen05 (sm_100a). PTX ISA 9.7.16.4.1: bits 46 to 48 are the constant 0b001.
// The value 2 in the three bits from bit 61 selects the 128-byte swizzle. A K-step advances by 32 bytes, as for wgmma.
__host__ __device__ constexpr uint64_t tcgen05_operand(uint32_t address) {
    return operand_fields(address) | uint64_t(1) << 46 | uint64_t(2) << 61;
}

// The instruction descriptor of tcgen05.mma .kind::f16 for an M x N product (sm_100a). PTX ISA 9.7.16.4.2:
//   bit 4 = 1            fp32 sums;
//   bits 7 and 10 = 1    a and b in bf16;
//   bits 15 and 16 = 0   a and b K-major;
//   from bit 17          N / 8;
//   from bit 24          M / 16.
// The sparsity bit is 0: dense. The caller must pass a pair of m and n that the instruction supports.
__host__ __device__ constexpr uint32_t tcgen05_instruction(int m, int n) {
    return 1u << 4 | 1u << 7 | 1u << 10 | uint32_t(n / 8) << 17 | uint32_t(m / 16) << 24;
}

// The tensor-memory address of a lane (0 to 127) and a column (0 to 511, 32 bits a cell) of an allocation (sm_100a).
// PTX ISA 9.7.16.1, tensor memory addressing: the lane from bit 16, the column from bit 0.
// For products with M = 128, row i of the sums is lane i. Column j of the sums is column j of the allocation.
__host__ __device__ constexpr uint32_t tensor_address(uint32_t allocated, uint32_t lane, uint32_t column) {
    return allocated + (lane << 16) + column;
}
