// CUDA C++ as a host compiler's language: included before every side that is emulated, after `emulate.py` rewrote its launches.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "host_api.hpp"
#include "numbers.hpp"
#include "runtime.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __noinline__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))

// So that an access is found in the line of the side that makes it.
#define CUDA_ON_CPU_INLINE __attribute__((always_inline)) inline

// Where a call stands, as its last and defaulted argument.
#define CUDA_ON_CPU_PLACE \
    cuda_on_cpu::Place { file, line }
#define CUDA_ON_CPU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cuda_on_cpu {

// What `kernel<<<grid, block, shared, stream>>>` becomes; calling it evaluates the arguments once, as a launch does.
template <typename Kernel>
struct Launch {
    const char* name;
    Kernel kernel;
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = nullptr;

    template <typename... Arguments>
    void operator()(Arguments... arguments) const {
        const Config config{name, grid, block, shared};
        auto call = [kernel = kernel, arguments...] { kernel(arguments...); };
        using Call = decltype(call);
        enqueue([=] { run(config, [](const void* closure) { (*static_cast<const Call*>(closure))(); }, &call, sizeof call); });
    }
};
template <typename Kernel>
Launch<Kernel> launch(const char* name, Kernel kernel, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) {
    return {name, kernel, grid, block, shared, stream};
}

}  // namespace cuda_on_cpu

template <typename... Expected, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...), Arguments... arguments) {
    cuda_on_cpu::launch("of cudaLaunchKernelEx", kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes,
                        config->stream)(Expected(arguments)...);
    return cuda_on_cpu::now();
}

namespace cuda_on_cpu {

template <typename T>
uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T>
T value_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T>
T shuffle(const char* operation, unsigned mask, T value, int source, Place place) {
    return value_of<T>(meet(operation, mask, bits_of(value), place).values[source]);
}
template <typename T, typename Combine>
T reduce(const char* operation, unsigned mask, T value, Combine combine, Place place) {
    const Meeting& met = meet(operation, mask, bits_of(value), place);
    T result = value;
    for (int i = 0; i < LANES; i++)
        if (met.lanes >> i & 1 && i != int(lane())) result = combine(result, value_of<T>(met.values[i]));
    return result;
}
inline unsigned ballot(const char* operation, unsigned mask, int predicate, Place place) {
    const Meeting& met = meet(operation, mask, predicate != 0, place);
    unsigned result = 0;
    for (int i = 0; i < LANES; i++) result |= unsigned(met.values[i] == 1) << i;
    return result;
}
template <typename T, typename Change>
CUDA_ON_CPU_INLINE T atomic(T* address, Change change) {
    access_atomically(address, sizeof(T));
    T old;
    move_bytes(&old, address, sizeof old);
    const T changed = change(old);
    move_bytes(address, &changed, sizeof old);
    return old;
}

}  // namespace cuda_on_cpu

inline void __syncthreads(CUDA_ON_CPU_HERE) { cuda_on_cpu::block_barrier(0, CUDA_ON_CPU_PLACE); }
inline int __syncthreads_count(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::block_barrier(predicate, CUDA_ON_CPU_PLACE); }
inline int __syncthreads_or(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::block_barrier(predicate, CUDA_ON_CPU_PLACE) != 0; }
inline int __syncthreads_and(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::block_barrier(!predicate, CUDA_ON_CPU_PLACE) == 0; }
inline void __syncwarp(unsigned mask = ~0u, CUDA_ON_CPU_HERE) { cuda_on_cpu::meet("__syncwarp", mask, 0, CUDA_ON_CPU_PLACE); }
inline void __trap(CUDA_ON_CPU_HERE) { cuda_on_cpu::trap(CUDA_ON_CPU_PLACE); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { cuda_on_cpu::let_others_run(); }
// The language promises no lane but the caller's own, so code that counts on more does not get it here.
inline unsigned __activemask() { return 1u << cuda_on_cpu::lane(); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_CPU_HERE) {
    const int first = int(cuda_on_cpu::lane()) / width * width;
    return cuda_on_cpu::shuffle("__shfl_sync", mask, value, first + (source & (width - 1)), CUDA_ON_CPU_PLACE);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_ON_CPU_HERE) {
    const int me = int(cuda_on_cpu::lane()), source = me + int(by);
    return cuda_on_cpu::shuffle("__shfl_down_sync", mask, value, source / width == me / width ? source : me, CUDA_ON_CPU_PLACE);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_ON_CPU_HERE) {
    const int me = int(cuda_on_cpu::lane()), source = me - int(by);
    return cuda_on_cpu::shuffle("__shfl_up_sync", mask, value, source >= me / width * width ? source : me, CUDA_ON_CPU_PLACE);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, CUDA_ON_CPU_HERE) {
    const int me = int(cuda_on_cpu::lane()), source = me ^ with;
    return cuda_on_cpu::shuffle("__shfl_xor_sync", mask, value, source < (me / width + 1) * width ? source : me, CUDA_ON_CPU_PLACE);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
    return cuda_on_cpu::ballot("__ballot_sync", mask, predicate, CUDA_ON_CPU_PLACE);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
    return cuda_on_cpu::ballot("__any_sync", mask, predicate, CUDA_ON_CPU_PLACE) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
    return cuda_on_cpu::ballot("__all_sync", mask, !predicate, CUDA_ON_CPU_PLACE) == 0;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_ON_CPU_HERE) {
    const cuda_on_cpu::Meeting& met = cuda_on_cpu::meet("__match_any_sync", mask, cuda_on_cpu::bits_of(value), CUDA_ON_CPU_PLACE);
    unsigned same = 0;
    for (int i = 0; i < 32; i++) same |= unsigned(met.lanes >> i & 1 && met.values[i] == cuda_on_cpu::bits_of(value)) << i;
    return same;
}
#define CUDA_ON_CPU_REDUCE(name, expression)                                                                                             \
    template <typename T>                                                                                                                \
    T __reduce_##name##_sync(unsigned mask, T value, CUDA_ON_CPU_HERE) {                                                                 \
        return cuda_on_cpu::reduce("__reduce_" #name "_sync", mask, value, [](T a, T b) -> T { return expression; }, CUDA_ON_CPU_PLACE); \
    }
CUDA_ON_CPU_REDUCE(add, a + b)
CUDA_ON_CPU_REDUCE(min, b < a ? b : a)
CUDA_ON_CPU_REDUCE(max, a < b ? b : a)
CUDA_ON_CPU_REDUCE(and, a& b)
CUDA_ON_CPU_REDUCE(or, a | b)
CUDA_ON_CPU_REDUCE(xor, a ^ b)

#define CUDA_ON_CPU_ATOMIC(name, expression)                                            \
    template <typename T, typename V>                                                   \
    CUDA_ON_CPU_INLINE T name(T* address, V with) {                                     \
        const T value = T(with);                                                        \
        return cuda_on_cpu::atomic(address, [=](T old) -> T { return T(expression); }); \
    }                                                                                   \
    template <typename T, typename V>                                                   \
    CUDA_ON_CPU_INLINE T name##_block(T* address, V with) {                             \
        return name(address, with);                                                     \
    }
CUDA_ON_CPU_ATOMIC(atomicAdd, old + value)
CUDA_ON_CPU_ATOMIC(atomicSub, old - value)
CUDA_ON_CPU_ATOMIC(atomicExch, value)
CUDA_ON_CPU_ATOMIC(atomicMin, value < old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicMax, old < value ? value : old)
CUDA_ON_CPU_ATOMIC(atomicAnd, old& value)
CUDA_ON_CPU_ATOMIC(atomicOr, old | value)
CUDA_ON_CPU_ATOMIC(atomicXor, old ^ value)
CUDA_ON_CPU_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDA_ON_CPU_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T, typename A, typename B>
CUDA_ON_CPU_INLINE T atomicCAS(T* address, A expected, B value) {
    return cuda_on_cpu::atomic(address, [=](T old) -> T { return old == T(expected) ? T(value) : old; });
}

#define CUDA_ON_CPU_LOAD(name)                    \
    template <typename T>                         \
    CUDA_ON_CPU_INLINE T name(const T* address) { \
        return *address;                          \
    }
CUDA_ON_CPU_LOAD(__ldg)
CUDA_ON_CPU_LOAD(__ldca)
CUDA_ON_CPU_LOAD(__ldcg)
CUDA_ON_CPU_LOAD(__ldcs)
CUDA_ON_CPU_LOAD(__ldlu)
CUDA_ON_CPU_LOAD(__ldcv)
#define CUDA_ON_CPU_STORE(name)                         \
    template <typename T, typename V>                   \
    CUDA_ON_CPU_INLINE void name(T* address, V value) { \
        *address = value;                               \
    }
CUDA_ON_CPU_STORE(__stwb)
CUDA_ON_CPU_STORE(__stcg)
CUDA_ON_CPU_STORE(__stcs)
CUDA_ON_CPU_STORE(__stwt)

// Copies land when they are waited for, not before.
CUDA_ON_CPU_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    cuda_on_cpu::copy_later(to, from, bytes, zeros);
}
inline void __pipeline_commit() { cuda_on_cpu::commit_copies(); }
inline void __pipeline_wait_prior(size_t groups) { cuda_on_cpu::finish_copies(groups); }

inline long long clock64() {
    static long long now = 0;
    return ++now;
}
inline uint64_t global_time() { return uint64_t(clock64()); }  // common/cuda/clock.cuh, which is inline PTX

#include "cooperative_groups.hpp"
#include "pipeline.hpp"
