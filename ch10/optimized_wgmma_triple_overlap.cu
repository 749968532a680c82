// Optimized: the TMA loads six steps ahead, and of two warpgroups one multiplies its tile while the other drains the tile before.
// expects: 1.4x, a step of the baseline is 900 cycles of loading and 512 of products, so its two blocks an SM multiply in 1024 of 1412
// proves: tma_load_tile
// proves: tma_store
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// has: wgmma_f16_bf16
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "common/cuda/wgmma.cuh"
#include "shared_triple_overlap.cuh"

// Accumulators are registers, so those who multiply drain as well: 128 sums a thread, two products of 64 rows a warpgroup.
struct Wgmma {
    static constexpr int TILE_N = 128;
    static constexpr bool IN_REGISTERS = true;
    static constexpr int CONSUMERS = 4;  // warps, one arrival each

    float sum[2][64];
    uint64_t* reading;  // the barrier of the stage whose products may still run

    __device__ explicit Wgmma(const uint32_t&) {}
    __device__ static void set_up(uint32_t*) {}
    __device__ static void leave_registers() { keep_registers<40>(); }
    __device__ static void take_registers() { ::take_registers<232>(); }  // 40 + 2 x 232 = 504 = 3 x 168, with which the block began
    __device__ static void tear_down(bool) {}

    // Eight products, which run while the next stage is waited for; then the stage before can be had again.
    __device__ void step(int, const Element* a, const Element* b, bool first, uint64_t* consumed) {
        const uint64_t a_from = wgmma_operand(shared_address(a)), b_from = wgmma_operand(shared_address(b));
        hold(sum[0]);
        hold(sum[1]);
        wgmma_fence();
#pragma unroll
        for (int l = 0; l < TILE_K / 16; l++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint64_t rows = half * 64 * SWIZZLE_ROW, columns = l * 32;
                wgmma_64x128x16(sum[half], a_from + ((rows + columns) >> 4), b_from + (columns >> 4), !first || l > 0);
            }
        }
        wgmma_commit();
        if (!first) {
            wgmma_wait<1>();
            arrive(reading);
        }
        reading = consumed;
    }

    // The turn is the other's while the last products of this tile still run.
    __device__ void end(uint64_t* accumulated) {
        arrive(accumulated);
        wgmma_wait<0>();
        hold(sum[0]);
        hold(sum[1]);
        arrive(reading);
    }

    // A quad writes 16 bytes, the 8 quads of a warp 8 rows of a column of chunks: all 32 banks.
    __device__ void read(int, int panel, unsigned char* staged) {
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int chunk = 0; chunk < 8; chunk++) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const float* pair = &sum[half][4 * (8 * panel + chunk) + 2 * i];
                    const uint32_t row = half * 64 + warp * 16 + lane / 4 + 8 * i;
                    *reinterpret_cast<__nv_bfloat162*>(staged + swizzled(row, chunk) + lane % 4 * 4) =
                        __floats2bfloat162_rn(pair[0], pair[1]);
                }
            }
        }
    }
    __device__ static void give_back(uint64_t*) {}

  private:
    // All lanes have waited for the warp's products: one tells.
    __device__ static void arrive(uint64_t* barrier) {
        if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
    }
};

PREPARE(void** state) {
    *state = nullptr;
    return prepare_triple_overlap<Wgmma>();
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    return launch_triple_overlap<Wgmma>(a, b, c, m, n, k, stream);
}
