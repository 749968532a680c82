// Shared by the kernels from `wgmma` on: the tile, a ring of stages that the TMA fills, a warpgroup's products and sums.
#pragma once
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"
#include "common/cuda/wgmma.cuh"
#include "shared_persistent.cuh"
#include "shared_tile.cuh"

// The ladder's tile. Shared memory moves 128 bytes per cycle. A product of 64 x 256 x 16 takes 128 cycles and reads 80 bytes in each. A
// K-step of a tile of 128 x 256 is eight such products, 1024 cycles, in which the TMA writes 48 KB: 48 bytes per cycle. Together that is
// all 128 bytes, so a smaller tile, or narrower products, would wait for shared memory.
constexpr int TILE_N = 256;
constexpr int CONSUMERS = 2;  // warpgroups that multiply, 64 rows of the tile each: 128 sums per thread
constexpr int ROWS = TILE_M / CONSUMERS;
constexpr int STAGES = 4;  // 192 KB of the 227 KB that a block may have
constexpr int PANEL = 64;  // columns of c that one TMA store covers: rows of 128 bytes

// The parts of a pipeline for a tile of any size: CONSUMERS warpgroups multiply 64 rows each, the TMA loads up to STAGES K-steps ahead.
template <int CONSUMERS, int TILE_N, int STAGES>
struct Pipeline {
    static constexpr int PANELS = TILE_N / PANEL;
    static constexpr int STAGE_BYTES = (CONSUMERS * ROWS + TILE_N) * SWIZZLE_ROW;

    // The stage of a K-step in the ring, and the parity of the barrier phase in which that stage is filled.
    struct Slot {
        int stage;
        uint32_t parity;
        __device__ explicit Slot(uint32_t step) : stage(step % STAGES), parity(step / STAGES % 2) {}
    };

    // STAGES times the tiles of a K-step. A phase of `full` completes when the TMA has written all bytes of the stage. A phase of `empty`
    // completes when `readers` have arrived: each warp arrives once its products have read the stage.
    struct alignas(SWIZZLE_PERIOD) Ring {
        Element a[STAGES][CONSUMERS * ROWS * TILE_K], b[STAGES][TILE_N * TILE_K];
        uint64_t full[STAGES], empty[STAGES];

        __device__ void initialize(int readers) {
            for (int i = 0; i < STAGES; i++) {
                barrier_init(&full[i], 1);
                barrier_init(&empty[i], readers);
            }
        }
    };

    // A warpgroup's sums: 64 rows of a tile of c.
    struct Sums {
        float sum[TILE_N / 2];

        // Starts the four products of a K-step and returns while they run. Warpgroup w multiplies rows 64 w to 64 w + 63 of a's tile.
        __device__ void add(const Ring& ring, int stage, bool first) {
            const uint64_t a = wgmma_operand(shared_address(ring.a[stage] + threadIdx.x / WARPGROUP * (ROWS * TILE_K)));
            const uint64_t b = wgmma_operand(shared_address(ring.b[stage]));
            hold(sum);
            wgmma_fence();
#pragma unroll
            for (int l = 0; l < TILE_K / 16; l++) {
                const uint64_t columns = l * 32 >> 4;
                multiply(sum, a + columns, b + columns, !first || l > 0);
            }
            wgmma_commit();
        }

        // Stores from registers to c: four lanes write 16 bytes of a row, half a sector.
        __device__ void store(Element* c, int first_row, int first_column, int m, int n) {
            hold(sum);
            const int row = first_row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = first_column + threadIdx.x % 4 * 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
#pragma unroll
                for (int j = 0; j < TILE_N / 8; j++) {
                    if (row + 8 * i < m && column + 8 * j < n) {
                        *reinterpret_cast<__nv_bfloat162*>(c + size_t(row + 8 * i) * n + column + 8 * j) =
                            __floats2bfloat162_rn(sum[4 * j + 2 * i], sum[4 * j + 2 * i + 1]);
                    }
                }
            }
        }

      private:
        __device__ static void multiply(float (&sum)[64], uint64_t a, uint64_t b, bool add) { wgmma_64x128x16(sum, a, b, add); }
        __device__ static void multiply(float (&sum)[128], uint64_t a, uint64_t b, bool add) { wgmma_64x256x16(sum, a, b, add); }
    };

    // For kernels that store with the TMA.
    struct RingAndPanels : Ring {
        alignas(SWIZZLE_PERIOD) Element panel[CONSUMERS][ROWS * PANEL];
    };

    // A finished tile's rows of one warpgroup, rounded to bf16. They take half as many registers as the sums, so the next tile's products
    // can have the sums' registers. 64 columns at a time go through a panel in shared memory, which the TMA stores while products run.
    struct Rounded {
        int row, column;
        __nv_bfloat162 pair[TILE_N / 4];

        __device__ void take(Sums& sums, int first_row, int first_column) {
            row = first_row, column = first_column;
            hold(sums.sum);
#pragma unroll
            for (int i = 0; i < TILE_N / 4; i++) pair[i] = __floats2bfloat162_rn(sums.sum[2 * i], sums.sum[2 * i + 1]);
        }

        __device__ void store(int panel, Element* staged, const CUtensorMap* c) const {
            const int barrier = 1 + threadIdx.x / WARPGROUP;
            const bool leads = threadIdx.x % WARPGROUP == 0;
            if (leads) wait_until_stores_have_read();
            warpgroup_sync(barrier);
            write(panel, reinterpret_cast<unsigned char*>(staged));
            show_to_async_proxy();
            warpgroup_sync(barrier);
            if (leads) store_tile(c, column + panel * PANEL, row, staged);
        }
        __device__ void store_all(Element* staged, const CUtensorMap* c) const {
#pragma unroll
            for (int panel = 0; panel < PANELS; panel++) store(panel, staged, c);
        }

      private:
        // Four lanes write a chunk of 16 bytes; a warp writes the same chunk column of 8 rows, which swizzling spreads over all 32 banks.
        __device__ void write(int panel, unsigned char* staged) const {
            const int row = threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
            for (int chunk = 0; chunk < PANEL / 8; chunk++) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    *reinterpret_cast<__nv_bfloat162*>(staged + swizzled(row + 8 * i, chunk) + threadIdx.x % 4 * 4) =
                        pair[2 * (PANEL / 8 * panel + chunk) + i];
                }
            }
        }
    };
};

using Ladder = Pipeline<CONSUMERS, TILE_N, STAGES>;
using Slot = Ladder::Slot;
using Ring = Ladder::Ring;
using Sums = Ladder::Sums;
using RingAndPanels = Ladder::RingAndPanels;
using Rounded = Ladder::Rounded;
constexpr auto PANELS = Ladder::PANELS, STAGE_BYTES = Ladder::STAGE_BYTES;
