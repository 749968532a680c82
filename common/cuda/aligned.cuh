// Vector accesses: a load or store of 16 or 32 bytes needs an address that is a multiple of as many.
#pragma once
#include <cstddef>
#include <cstdint>

// Whether all `pointers` are multiples of `bytes`. A LAUNCH that casts them to vectors refuses others with cudaErrorMisalignedAddress.
// Allocations of CUDA and PyTorch are multiples of 256 bytes; an input that is a view may not be.
template <typename... T>
bool aligned(size_t bytes, const T*... pointers) {
    return (... && (reinterpret_cast<uintptr_t>(pointers) % bytes == 0));
}
