// The Mma of Hopper for shared_triple_overlap.cuh: sums are in registers, so the warpgroup that multiplies a tile also drains it.
#pragma once
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/operands.cuh"
#include "common/cuda/warpgroup.cuh"
#include "common/cuda/wgmma.cuh"
#include "shared_tile.cuh"

struct EightSums {
    float x[8];
};

// What is applied to sums before they are rounded: nothing.
struct AsItIs {
    __device__ static EightSums of(EightSums sums) { return sums; }
};

// A warpgroup has HALVES of a tile's 128 rows; each half takes TILE_N / 2 sums per thread. With HALVES = 2 a tile belongs to one warpgroup,
// and the two warpgroups alternate at the tensor cores (ping-pong). With HALVES = 1 they share each tile.
template <int HALVES, typename Finish = AsItIs, int COLUMNS = 128>
struct WgmmaSums {
    static constexpr int TILE_N = COLUMNS;
    static constexpr bool IN_REGISTERS = true;
    static constexpr int SHARING = 2 / HALVES;
    static constexpr int CONSUMERS = 4 * SHARING;  // warps, one arrival each

    float sum[HALVES][TILE_N / 2];
    uint64_t* reading;  // the barrier of the stage whose products may still run

    __device__ explicit WgmmaSums(const uint32_t&) {}
    __device__ static void set_up(uint32_t*) {}
    __device__ static void leave_registers() { keep_registers<40>(); }
    __device__ static void take_registers() { ::take_registers<232>(); }  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
    __device__ static void tear_down(bool) {}

    // Starts four products per half, which run while the next stage is waited for. Then the previous stage is free again.
    __device__ void step(int, const Element* a, const Element* b, bool first, uint64_t* consumed) {
        const uint64_t a_from = wgmma_operand(shared_address(a)), b_from = wgmma_operand(shared_address(b));
        const int first_half = SHARING == 1 ? 0 : threadIdx.x / WARPGROUP - 1;
#pragma unroll
        for (auto& half : sum) hold(half);
        wgmma_fence();
#pragma unroll
        for (int l = 0; l < TILE_K / 16; l++) {
#pragma unroll
            for (int half = 0; half < HALVES; half++) {
                const uint64_t rows = (first_half + half) * 64 * SWIZZLE_ROW, columns = l * 32;
                multiply(sum[half], a_from + ((rows + columns) >> 4), b_from + (columns >> 4), !first || l > 0);
            }
        }
        wgmma_commit();
        if (!first) {
            wgmma_wait<1>();
            arrive(reading);
        }
        reading = consumed;
    }

    // In ping-pong, the other warpgroup may start while the last products of this tile still run.
    __device__ void end(uint64_t* accumulated) {
        if (SHARING == 1) arrive(accumulated);
        wgmma_wait<0>();
#pragma unroll
        for (auto& half : sum) hold(half);
        arrive(reading);
    }

    // Four lanes write a chunk of 16 bytes; a warp writes the same chunk column of 8 rows: all 32 banks. The swizzle repeats every 8 rows.
    __device__ void read(int, int panel, unsigned char* staged) {
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < HALVES; half++) {
#pragma unroll
            for (int chunk = 0; chunk < 8; chunk += 2) {
                EightSums eight;
#pragma unroll
                for (int j = 0; j < 8; j++) eight.x[j] = sum[half][4 * (8 * panel + chunk) + j];
                eight = Finish::of(eight);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float* pair = &eight.x[2 * i];
                    unsigned char* to = staged + (half * 64 + warp * 16 + 8 * (i % 2)) * SWIZZLE_ROW + swizzled(lane / 4, chunk + i / 2);
                    *reinterpret_cast<__nv_bfloat162*>(to + lane % 4 * 4) = __floats2bfloat162_rn(pair[0], pair[1]);
                }
            }
        }
    }
    __device__ static void give_back(uint64_t*) {}

  private:
    __device__ static void multiply(float (&half)[64], uint64_t a, uint64_t b, bool add) { wgmma_64x128x16(half, a, b, add); }
    __device__ static void multiply(float (&half)[96], uint64_t a, uint64_t b, bool add) { wgmma_64x192x16(half, a, b, add); }

    // All lanes of the warp have waited for its products, so one lane arrives for the warp.
    __device__ static void arrive(uint64_t* barrier) {
        if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
    }
};
