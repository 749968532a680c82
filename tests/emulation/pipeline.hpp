// libcu++'s pipelines of a block, as far as make_pipeline with a number of producers, its four steps and memcpy_async.
#pragma once

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

template <size_t ALIGNMENT>
struct aligned_size_t {
    size_t value;
    explicit constexpr aligned_size_t(size_t value) : value(value) {}
};

template <thread_scope SCOPE, uint8_t STAGES>
struct pipeline_shared_state {
    char address_alone;  // what it would hold is kept by the emulation
};

template <thread_scope SCOPE>
class pipeline {
  public:
    explicit pipeline(const void* state) : state(state) {}
    pipeline(pipeline&&) = default;
    void producer_acquire() { cuda_on_cpu::acquire_stage(state, head); }
    void producer_commit() { cuda_on_cpu::commit_stage(state, head++); }
    void consumer_wait() { cuda_on_cpu::wait_for_stage(state, tail); }
    void consumer_release() { cuda_on_cpu::release_stage(state, tail++); }

  private:
    const void* state;
    uint64_t head = 0, tail = 0;  // stages filled and emptied by this thread
};

// The members need not meet: whoever comes first sets the pipeline up for all.
template <typename Group, thread_scope SCOPE, uint8_t STAGES>
pipeline<SCOPE> make_pipeline(const Group& group, pipeline_shared_state<SCOPE, STAGES>* state, size_t producers) {
    cuda_on_cpu::make_pipeline(state, STAGES, group.size(), unsigned(producers));
    return pipeline<SCOPE>(state);
}

// The thread of rank 0 makes the whole copy; the stage that it commits then has it.
template <typename Group, size_t ALIGNMENT, thread_scope SCOPE>
CUDA_ON_CPU_INLINE void memcpy_async(const Group& group, void* to, const void* from, aligned_size_t<ALIGNMENT> bytes, pipeline<SCOPE>&,
                                     CUDA_ON_CPU_HERE) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes.value) % ALIGNMENT) __trap(file, line);
    if (group.thread_rank() == 0) cuda_on_cpu::copy_later(to, from, bytes.value, 0);
}

}  // namespace cuda

// Only a pipeline's group waits at a barrier of its own, and here it need not.
inline void __barrier_sync_count(unsigned, unsigned, CUDA_ON_CPU_HERE) { __trap(file, line); }
