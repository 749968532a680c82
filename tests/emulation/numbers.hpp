// CUDA's vector types, its small floating-point formats and its arithmetic intrinsics, on the host.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cstdint>
#include <type_traits>

#include "runtime.hpp"

// 16 bytes is the widest access before Blackwell, and so the largest alignment of the classic types.
#define CUDA_ON_CPU_VECTORS(name, T)                                              \
    struct name##1 { T x; };                                                      \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                            \
    CUDA_ON_CPU_THREE(name, T)                                                    \
    struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
    inline name##1 make_##name##1(T x) { return {x}; }                            \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                    \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }            \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define CUDA_ON_CPU_THREE(name, T) \
    struct name##3 { T x, y, z; };
CUDA_ON_CPU_VECTORS(char, signed char)
CUDA_ON_CPU_VECTORS(uchar, unsigned char)
CUDA_ON_CPU_VECTORS(short, short)
CUDA_ON_CPU_VECTORS(ushort, unsigned short)
CUDA_ON_CPU_VECTORS(int, int)
CUDA_ON_CPU_VECTORS(long, long)
CUDA_ON_CPU_VECTORS(ulong, unsigned long)
CUDA_ON_CPU_VECTORS(longlong, long long)
CUDA_ON_CPU_VECTORS(ulonglong, unsigned long long)
CUDA_ON_CPU_VECTORS(float, float)
CUDA_ON_CPU_VECTORS(double, double)
#undef CUDA_ON_CPU_THREE
#define CUDA_ON_CPU_THREE(name, T)  // uint3 is also what threadIdx is
CUDA_ON_CPU_VECTORS(uint, unsigned)
struct alignas(32) double4_32a {
    double x, y, z, w;
};
struct alignas(32) longlong4_32a {
    long long x, y, z, w;
};
struct alignas(32) ulonglong4_32a {
    unsigned long long x, y, z, w;
};

namespace cuda_on_cpu {

// An IEEE format of EXPONENT and MANTISSA bits and a sign. Conversions round to nearest even, from float and double alike.
template <int EXPONENT, int MANTISSA>
struct Small {
    uint16_t bits;
    static constexpr int BIAS = (1 << (EXPONENT - 1)) - 1;
    static constexpr int INFINITE = ((1 << EXPONENT) - 1) << MANTISSA;

    Small() = default;
    template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    Small(T value) : bits(uint16_t(encoded(double(value)) | (std::signbit(double(value)) << (EXPONENT + MANTISSA)))) {}
    operator float() const {
        const int magnitude = bits & ((1 << (EXPONENT + MANTISSA)) - 1), exponent = magnitude >> MANTISSA;
        const int mantissa = magnitude & ((1 << MANTISSA) - 1);
        float value =
            exponent ? ldexpf(float(mantissa + (1 << MANTISSA)), exponent - BIAS - MANTISSA) : ldexpf(float(mantissa), 1 - BIAS - MANTISSA);
        if (magnitude >= INFINITE) value = mantissa ? NAN : INFINITY;
        return bits >> (EXPONENT + MANTISSA) ? -value : value;
    }
    friend Small operator+(Small a, Small b) { return float(a) + float(b); }
    friend Small operator-(Small a, Small b) { return float(a) - float(b); }
    friend Small operator*(Small a, Small b) { return float(a) * float(b); }
    friend Small operator/(Small a, Small b) { return float(a) / float(b); }
    friend Small operator-(Small a) { return -float(a); }
    friend bool operator==(Small a, Small b) { return float(a) == float(b); }
    friend bool operator!=(Small a, Small b) { return float(a) != float(b); }
    friend bool operator<(Small a, Small b) { return float(a) < float(b); }
    friend bool operator>(Small a, Small b) { return float(a) > float(b); }
    friend bool operator<=(Small a, Small b) { return float(a) <= float(b); }
    friend bool operator>=(Small a, Small b) { return float(a) >= float(b); }
    Small& operator+=(Small b) { return *this = *this + b; }
    Small& operator-=(Small b) { return *this = *this - b; }
    Small& operator*=(Small b) { return *this = *this * b; }
    Small& operator/=(Small b) { return *this = *this / b; }

  private:
    static int encoded(double value) {
        if (std::isnan(value)) return INFINITE | ((1 << MANTISSA) - 1);
        const double size = fabs(value);
        if (std::isinf(size)) return INFINITE;
        const int exponent = size < ldexp(1, 1 - BIAS) ? 1 - BIAS : ilogb(size);
        // A mantissa that rounds up to the next power of two carries into the exponent, and out of the largest into infinity.
        const long long rounded = ((exponent + BIAS - 1LL) << MANTISSA) + llrint(ldexp(size, MANTISSA - exponent));
        return rounded < INFINITE ? int(rounded) : INFINITE;
    }
};

template <typename T>
struct alignas(4) Two {
    T x, y;
    friend Two operator+(Two a, Two b) { return {a.x + b.x, a.y + b.y}; }
    friend Two operator-(Two a, Two b) { return {a.x - b.x, a.y - b.y}; }
    friend Two operator*(Two a, Two b) { return {a.x * b.x, a.y * b.y}; }
    friend Two operator/(Two a, Two b) { return {a.x / b.x, a.y / b.y}; }
    Two& operator+=(Two b) { return *this = *this + b; }
    Two& operator-=(Two b) { return *this = *this - b; }
    Two& operator*=(Two b) { return *this = *this * b; }
};

template <typename To, typename From>
To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace cuda_on_cpu

typedef cuda_on_cpu::Small<5, 10> __half, half;
typedef cuda_on_cpu::Small<8, 7> __nv_bfloat16, nv_bfloat16;
typedef cuda_on_cpu::Two<__half> __half2, half2;
typedef cuda_on_cpu::Two<__nv_bfloat16> __nv_bfloat162, nv_bfloat162;

#define CUDA_ON_CPU_SMALL(T, T2, single, pair, from)                                               \
    inline T __float2##single(float v) { return v; }                                               \
    inline T __float2##single##_rn(float v) { return v; }                                          \
    inline T __double2##single(double v) { return v; }                                             \
    inline T2 __float2##pair##_rn(float v) { return {T(v), T(v)}; }                                \
    inline T2 __floats2##pair##_rn(float x, float y) { return {T(x), T(y)}; }                      \
    inline T2 __float22##pair##_rn(float2 v) { return {T(v.x), T(v.y)}; }                          \
    inline float __##from##2float(T v) { return v; }                                               \
    inline float2 __##from##22float2(T2 v) { return {v.x, v.y}; }                                  \
    inline T2 __##from##2##pair(T v) { return {v, v}; }                                            \
    inline T2 __halves2##pair(T x, T y) { return {x, y}; }                                         \
    inline T2 make_##pair(T x, T y) { return {x, y}; }                                             \
    inline float __low2float(T2 v) { return v.x; }                                                 \
    inline float __high2float(T2 v) { return v.y; }                                                \
    inline T __hadd(T a, T b) { return a + b; }                                                    \
    inline T __hsub(T a, T b) { return a - b; }                                                    \
    inline T __hmul(T a, T b) { return a * b; }                                                    \
    inline T __hfma(T a, T b, T c) { return double(a) * double(b) + double(c); }                   \
    inline T __hmax(T a, T b) { return fmaxf(a, b); }                                              \
    inline T __hmin(T a, T b) { return fminf(a, b); }                                              \
    inline T __habs(T a) { return fabsf(a); }                                                      \
    inline T __hneg(T a) { return -a; }                                                            \
    inline bool __hgt(T a, T b) { return a > b; }                                                  \
    inline bool __hlt(T a, T b) { return a < b; }                                                  \
    inline bool __hisnan(T a) { return std::isnan(float(a)); }                                     \
    inline T hexp(T a) { return expf(a); }                                                         \
    inline T hsqrt(T a) { return sqrtf(a); }                                                       \
    inline T2 __hadd2(T2 a, T2 b) { return a + b; }                                                \
    inline T2 __hsub2(T2 a, T2 b) { return a - b; }                                                \
    inline T2 __hmul2(T2 a, T2 b) { return a * b; }                                                \
    inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    inline T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                 \
    inline T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
CUDA_ON_CPU_SMALL(__half, __half2, half, half2, half)
CUDA_ON_CPU_SMALL(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, bfloat16)
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }

template <typename A, typename B, std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, int> = 0>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(b) < T(a) ? T(b) : T(a);
}
template <typename A, typename B, std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, int> = 0>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(a) < T(b) ? T(b) : T(a);
}

// Macros, since glibc declares some of these names for itself.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
#define __tanhf tanhf

inline float rsqrtf(float v) { return 1 / sqrtf(v); }
inline double rsqrt(double v) { return 1 / sqrt(v); }
inline float rsqrt(float v) { return 1 / sqrtf(v); }
inline float __frsqrt_rn(float v) { return 1 / sqrtf(v); }
inline void sincospif(float v, float* sine, float* cosine) {
    double half_turns = fmod(double(v), 2.0);
    *sine = float(sin(M_PI * half_turns));
    *cosine = float(cos(M_PI * half_turns));
}
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float v) { return 1 / v; }
inline float __fsqrt_rn(float v) { return sqrtf(v); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __saturatef(float v) { return v > 0 ? (v < 1 ? v : 1) : 0; }
inline float normcdff(float v) { return 0.5f * erfcf(-v * float(M_SQRT1_2)); }

inline int __float2int_rn(float v) { return int(rintf(v)); }
inline int __float2int_rz(float v) { return int(v); }
inline int __float2int_rd(float v) { return int(floorf(v)); }
inline int __float2int_ru(float v) { return int(ceilf(v)); }
inline unsigned __float2uint_rn(float v) { return unsigned(rintf(v)); }
inline unsigned __float2uint_rz(float v) { return unsigned(v); }
inline float __int2float_rn(int v) { return float(v); }
inline float __uint2float_rn(unsigned v) { return float(v); }
inline float __double2float_rn(double v) { return float(v); }
inline int __float_as_int(float v) { return cuda_on_cpu::same_bits<int>(v); }
inline unsigned __float_as_uint(float v) { return cuda_on_cpu::same_bits<unsigned>(v); }
inline float __int_as_float(int v) { return cuda_on_cpu::same_bits<float>(v); }
inline float __uint_as_float(unsigned v) { return cuda_on_cpu::same_bits<float>(v); }
inline long long __double_as_longlong(double v) { return cuda_on_cpu::same_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return cuda_on_cpu::same_bits<double>(v); }
inline unsigned short __half_as_ushort(__half v) { return v.bits; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.bits; }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __brev(unsigned v) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (v >> i & 1) << (31 - i);
    return reversed;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return unsigned((uint64_t(high) << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return unsigned((uint64_t(high) << 32 | low) >> (by & 31)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return a * b; }
inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 4; i++) sum += int(int8_t(a >> 8 * i)) * int(int8_t(b >> 8 * i));
    return sum;
}
