// Cooperative groups, as far as a block and its tiles: each call is the collective of the lanes that the group has.
#pragma once

namespace cooperative_groups {

struct thread_block {
    void sync(CUDA_ON_CPU_HERE) const { cuda_on_cpu::block_barrier(0, CUDA_ON_CPU_PLACE); }
    unsigned thread_rank() const { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
    unsigned num_threads() const { return size(); }
    dim3 group_index() const { return blockIdx; }
    dim3 thread_index() const { return threadIdx; }
    dim3 dim_threads() const { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

template <unsigned SIZE>
struct thread_block_tile {
    static_assert(SIZE && SIZE <= 32 && (SIZE & (SIZE - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

    unsigned thread_rank() const { return cuda_on_cpu::lane() % SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    unsigned meta_group_rank() const { return this_thread_block().thread_rank() / SIZE; }
    unsigned meta_group_size() const { return (this_thread_block().size() + SIZE - 1) / SIZE; }

    void sync(CUDA_ON_CPU_HERE) const { __syncwarp(mask(), file, line); }
    template <typename T>
    T shfl(T value, int source, CUDA_ON_CPU_HERE) const {
        return __shfl_sync(mask(), value, source, SIZE, file, line);
    }
    template <typename T>
    T shfl_down(T value, unsigned by, CUDA_ON_CPU_HERE) const {
        return __shfl_down_sync(mask(), value, by, SIZE, file, line);
    }
    template <typename T>
    T shfl_up(T value, unsigned by, CUDA_ON_CPU_HERE) const {
        return __shfl_up_sync(mask(), value, by, SIZE, file, line);
    }
    template <typename T>
    T shfl_xor(T value, int with, CUDA_ON_CPU_HERE) const {
        return __shfl_xor_sync(mask(), value, with, SIZE, file, line);
    }
    bool any(int predicate, CUDA_ON_CPU_HERE) const { return __any_sync(mask(), predicate, file, line); }
    bool all(int predicate, CUDA_ON_CPU_HERE) const { return __all_sync(mask(), predicate, file, line); }
    unsigned ballot(int predicate, CUDA_ON_CPU_HERE) const { return __ballot_sync(mask(), predicate, file, line) >> first(); }

    unsigned first() const { return cuda_on_cpu::lane() / SIZE * SIZE; }
    unsigned mask() const { return (~0u >> (32 - SIZE)) << first(); }
};
template <unsigned SIZE, typename Group>
thread_block_tile<SIZE> tiled_partition(const Group&) {
    return {};
}

// The language promises a group of no more than the caller.
using coalesced_group = thread_block_tile<1>;
inline coalesced_group coalesced_threads() { return {}; }

template <typename Group>
void sync(const Group& group, CUDA_ON_CPU_HERE) {
    group.sync(file, line);
}

#define CUDA_ON_CPU_OPERATOR(name, expression)                 \
    template <typename T = void>                               \
    struct name {                                              \
        T operator()(T a, T b) const { return T(expression); } \
    };
CUDA_ON_CPU_OPERATOR(plus, a + b)
CUDA_ON_CPU_OPERATOR(less, b < a ? b : a)
CUDA_ON_CPU_OPERATOR(greater, a < b ? b : a)
CUDA_ON_CPU_OPERATOR(bit_and, a& b)
CUDA_ON_CPU_OPERATOR(bit_or, a | b)
CUDA_ON_CPU_OPERATOR(bit_xor, a ^ b)

template <unsigned SIZE, typename T, typename Combine>
T reduce(const thread_block_tile<SIZE>& tile, T value, Combine combine, CUDA_ON_CPU_HERE) {
    return cuda_on_cpu::reduce("cooperative_groups::reduce", tile.mask(), value, combine, CUDA_ON_CPU_PLACE);
}

// The thread of rank 0 makes the whole copy, once the group waits for it.
template <typename Group>
CUDA_ON_CPU_INLINE void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
    if (group.thread_rank() == 0) cuda_on_cpu::copy_later(to, from, bytes, 0);
    cuda_on_cpu::commit_copies();
}
template <typename Group>
void wait(const Group& group, CUDA_ON_CPU_HERE) {
    cuda_on_cpu::finish_copies(0);
    group.sync(file, line);
}

}  // namespace cooperative_groups
