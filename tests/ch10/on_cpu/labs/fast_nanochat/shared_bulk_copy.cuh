// Stand-in for bulk copies without a tensor map: each lands when the machine gets to it.
#pragma once
#include "common/cuda/tma.cuh"

inline void copy_bytes(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    on_cpu::require(shared_address(to) % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0 && bytes % 16 == 0, "not whole 16 bytes");
    on_cpu::require(shared_address(to) - 0x400 + bytes <= on_cpu::SHARED, "a copy beyond shared memory");
    on_cpu::later("copy " + std::to_string(on_cpu::copies++), [=] {
        std::memcpy(to, from, bytes);
        on_cpu::complete(barrier, bytes);
    });
}
