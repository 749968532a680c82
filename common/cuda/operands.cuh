// Operands of tensor cores: how a tile lies in shared memory, swizzled, and the descriptors that say so. Host code can compute them too.
#pragma once
#include <cstdint>

// Tiles of 128-byte rows, swizzled over 128 bytes: what the TMA fills and empties, and what tensor cores read in place.
constexpr int SWIZZLE_ROW = 128;      // bytes: 64 bf16
constexpr int SWIZZLE_PERIOD = 1024;  // bytes, 8 rows: after them the pattern repeats, and on a multiple of them it begins
constexpr int CHUNK = 16;             // bytes that stay together

// Byte offset of a chunk of a tile's row. CUDA driver API, CU_TENSOR_MAP_SWIZZLE_128B; PTX ISA 9.7.15.5.1.2 and 9.7.16.3: bits 4 to 6 of an
// address are those of the chunk, XORed with bits 7 to 9, those of the row. Chunks of a column lie in 8 different fours of banks.
__host__ __device__ constexpr uint32_t swizzled(uint32_t row, uint32_t chunk) { return row * SWIZZLE_ROW + ((chunk ^ row % 8) * CHUNK); }

// What the descriptors of wgmma and tcgen05 say alike of a K-major operand at `address` in shared memory. PTX ISA 9.7.15.5.1.2 and
// 9.7.16.4.1: 14 bits each, in units of 16 bytes, for the start (from bit 0), the leading dimension (16), which counts as 1 where rows are
// swizzled, and the stride from 8 rows to the next 8 (32). The base offset (49) is 0: tiles begin on a multiple of 1024.
__host__ __device__ constexpr uint64_t operand_fields(uint32_t address) {
    return uint64_t((address & 0x3FFFF) >> 4) | uint64_t(1) << 16 | uint64_t(SWIZZLE_PERIOD >> 4) << 32;
}

// PTX ISA 9.7.15.5.1.2, matrix descriptor: of the two bits from 62 on, 1 is swizzling over 128 bytes. Advancing by 32 bytes, 16 bf16 of
// K, within the swizzled row is adding to the start: the pattern is one of addresses, and begins where it did.
__host__ __device__ constexpr uint64_t wgmma_operand(uint32_t address) { return operand_fields(address) | uint64_t(1) << 62; }

// PTX ISA 9.7.16.4.1, shared memory descriptor: bits 46 to 48 are 0b001, and of the three bits from 61 on, 2 is swizzling over 128 bytes.
// Advancing by 32 bytes, 16 bf16 of K, is adding to the start, as for wgmma.
__host__ __device__ constexpr uint64_t tcgen05_operand(uint32_t address) {
    return operand_fields(address) | uint64_t(1) << 46 | uint64_t(2) << 61;
}

// PTX ISA 9.7.16.4.2, instruction descriptor of .kind::f16: dense, sums in fp32 (1 from bit 4), a and b in bf16 (1 from bits 7 and 10),
// both K-major (bits 15 and 16 clear), N / 8 from bit 17, M / 16 from bit 24.
__host__ __device__ constexpr uint32_t tcgen05_instruction(int m, int n) {
    return 1u << 4 | 1u << 7 | 1u << 10 | uint32_t(n / 8) << 17 | uint32_t(m / 16) << 24;
}

// PTX ISA 9.7.16.1, tensor memory addressing: 128 lanes from bit 16, 512 columns of 32 bits from bit 0. With M = 128, row i of the sums is
// lane i, and column j of them is column j of what was allocated.
__host__ __device__ constexpr uint32_t tensor_address(uint32_t allocated, uint32_t lane, uint32_t column) {
    return allocated + (lane << 16) + column;
}
