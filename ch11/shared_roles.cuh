// Warp roles and the pipelines between them: a pipeline counts the threads of two roles, those that fill and those that drain.
#pragma once
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "ch11/shared_chebyshev.cuh"

#pragma nv_diag_suppress static_var_with_dynamic_init  // the state of a pipeline in shared memory, which make_pipeline sets up

constexpr int STAGES = 2;  // double buffering
constexpr int WARP = 32, COMPUTE = 128, ROLES = WARP + COMPUTE;

using Pipeline = cuda::pipeline<cuda::thread_scope_block>;
using PipelineState = cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES>;
using Warp = cooperative_groups::thread_block_tile<WARP>;

// The threads [first, first + ROLES) of the block, for make_pipeline: they meet at a hardware barrier of their own.
struct Members {
    unsigned first, barrier;
    __device__ unsigned size() const { return ROLES; }
    __device__ unsigned thread_rank() const { return threadIdx.x - first; }
    __device__ void sync() const { __barrier_sync_count(barrier, ROLES); }
};

// Fills a stage with `count` floats, a multiple of 4: cp.async, 16 bytes per lane.
__device__ inline void load_stage(const Warp& warp, Pipeline& pipeline, float* stage, const float* from, int count) {
    pipeline.producer_acquire();
    cuda::memcpy_async(warp, stage, from, cuda::aligned_size_t<16>(sizeof(float) * count), pipeline);
    pipeline.producer_commit();
}
