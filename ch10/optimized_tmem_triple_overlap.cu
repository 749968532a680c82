// Optimized: load, multiply and drain overlap; sums in tensor memory.
// predicts: optimized = 0.678 x baseline  (cycles per K-step: 768 to load instead of (600 + 768 + 384 + 512) / 2 blocks = 1132)
// proves: tma_load_tile
// proves: tma_store
// has: tcgen05_mma_f16_tf32
// has: tcgen05_alloc
// has: tcgen05_dealloc
// has: tcgen05_relinquish
// has: tcgen05_commit
// has: tcgen05_ld
// has: mbarrier_expect_tx
// has: spills == 0
//
// Nobody has run this file on a GPU. Proved without one: the instructions, in the machine code for sm_100a; the descriptors, against the
// PTX ISA, CUTLASS and Triton; roles and barriers, by this code on a CPU in many orders of events, and by its Hopper twin on an H200.
// Not proved, because no stand-in can show it:
// - that tensor cores read the swizzled tiles, and spread sums over lanes and columns, as we read the ISA;
// - that a commit arrives after all reads of its stage, and that the fences order LDTM before the product that overwrites what it read;
// - that columns are granted as blocks come and go, and that allocation cannot hang where two kernels meet on an SM;
// - the time: that an SM gets 64 bytes per cycle from the L2, 600 cycles after a request, as on Hopper, and that four stages hide this.
#include "common/cuda/launch.cuh"
#include "common/cuda/tcgen05.cuh"
#include "shared_tensor_memory.cuh"
#include "shared_triple_overlap.cuh"

// The two accumulators fill all 512 columns of tensor memory, so one thread can multiply into one while others drain the other.
struct Tcgen05 {
    static constexpr int TILE_N = 256;
    static constexpr bool IN_REGISTERS = false;
    static constexpr int SHARING = 1;
    static constexpr int CONSUMERS = 1;  // a commit is one arrival
    static constexpr uint32_t COLUMNS = 2 * TILE_N;
    static constexpr uint32_t INSTRUCTION = tcgen05_instruction(TILE_M, TILE_N);

    uint32_t sums;

    __device__ static void set_up(uint32_t* tensor_memory) {
        tensor_memory_take(tensor_memory, COLUMNS);
        tcgen05_fence_before();
    }
    __device__ explicit Tcgen05(const uint32_t& tensor_memory) {
        tcgen05_fence_after();
        sums = tensor_memory;
    }
    __device__ static void leave_registers() {}
    __device__ static void take_registers() {}

    // Four products; the commit frees the stage when they are complete.
    __device__ void step(int accumulator, const Element* a, const Element* b, bool first, uint64_t* consumed) {
        const uint64_t a_from = tcgen05_operand(shared_address(a)), b_from = tcgen05_operand(shared_address(b));
        tcgen05_fence_after();  // orders the products after the waits: the stage is full, the accumulator drained
#pragma unroll
        for (int l = 0; l < TILE_K / 16; l++) {
            const uint64_t columns = l * 32 >> 4;
            tcgen05_multiply(tensor_address(sums, 0, accumulator * TILE_N), a_from + columns, b_from + columns, INSTRUCTION,
                             !first || l > 0);
        }
        tcgen05_commit(consumed);
    }
    __device__ void end(uint64_t* accumulated) { tcgen05_commit(accumulated); }

    __device__ void read(int accumulator, int panel, unsigned char* staged) {
        round_into_panel(sums, accumulator * TILE_N + panel * PANEL, staged);
    }
    __device__ static void give_back(uint64_t* drained) {
        tcgen05_fence_before();
        barrier_arrive(drained);
    }

    // The warp that allocated the columns frees them, once all warps have read theirs.
    __device__ void tear_down(bool took) const {
        tcgen05_fence_before();
        __syncthreads();
        tcgen05_fence_after();
        if (took) tensor_memory_give_back(sums, COLUMNS);
    }
};

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Tcgen05>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Tcgen05>(a, b, c, m, n, k, stream);
}
