// bf16 as its 16 bits, and the conversions that sides make: to nearest, ties to even.
#pragma once
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
    uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
inline float to_float(uint16_t bits) {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}
inline __nv_bfloat16 to_bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return {0x7FFF};
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {to_bf16(x), to_bf16(y)}; }
struct alignas(8) float2 {
    float x, y;
};
inline float2 __bfloat1622float2(__nv_bfloat162 pair) { return {to_float(pair.x.bits), to_float(pair.y.bits)}; }
