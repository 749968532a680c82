// Prints what our constexpr functions give, a name and a number in hexadecimal a line: compiled by nvcc, run on the host.
#include <cstdio>

#include "common/cuda/operands.cuh"

constexpr uint32_t ADDRESSES[] = {0, 0x400, 0x7C00, 0x37C00};

static_assert(tcgen05_instruction(128, 256) == 0x08400490, "constant at compile time");

int main() {
    for (uint32_t address : ADDRESSES) {
        std::printf("wgmma_%x %llx\n", address, static_cast<unsigned long long>(wgmma_operand(address)));
        for (int step = 0; step <= 10; step += 10) {  // of 11, in tiles of 176 rows
            const unsigned long long rows = wgmma_rows_operand(address, 176 * SWIZZLE_ROW) + (step * 16 * SWIZZLE_ROW >> 4);
            std::printf("rows_%x_step_%d_of_176 %llx\n", address, step, rows);
        }
        std::printf("tcgen05_%x %llx\n", address, static_cast<unsigned long long>(tcgen05_operand(address)));
    }
    for (int n = 64; n <= 256; n *= 2) std::printf("instruction_%d %x\n", n, tcgen05_instruction(128, n));
    std::printf("instruction_pair %x\n", tcgen05_instruction(256, 256));
    for (int row = 0; row < 256; row++) {
        for (int chunk = 0; chunk < 8; chunk++) std::printf("swizzled_%d_%d %x\n", row, chunk, swizzled(row, chunk));
    }
    std::printf("tensor %x\n", tensor_address(0x20, 96, 192));
}
