// Optimized: a block takes tile after tile; copies run ahead.
// predicts: baseline 0.537 ms = 4 * n / dram_read + 8 * n / dram_copy + 20e-6 on h100  (two passes; 20 us for the sums and gaps)
// predicts: optimized 0.360 ms = 8 * n / dram_copy + 10e-6 on h100  (one pass; 10 us assumed for the memset, the first and last tiles)
// proves: kernels == 1
// proves: atom_global_return
// proves: cp_async_16
// has: spills == 0
// scratch: int64_t status[n / 8192 + 2]
#include <cuda_pipeline.h>

#include "shared_tile_scan.cuh"

constexpr int BLOCKS_PER_SM = 2;

// A tile's status: 1 in the upper half once the sum in the lower half is known. One 64-bit store shows both at once, so no fence is needed.
// volatile: every access is one access, past the L1.
__device__ void publish(volatile int64_t* status, int sum) { *status = int64_t(1) << 32 | uint32_t(sum); }

// This thread's part of the sum of tiles `first` to `end` - 1: a tile a thread, each waited for.
__device__ int look_back(const volatile int64_t* status, int first, int end) {
    int sum = 0;
    for (int tile = first + int(threadIdx.x); tile < end; tile += THREADS) {
        int64_t found;
        while ((found = status[tile]) >> 32 == 0) __nanosleep(50);
        sum += int(uint32_t(found));
    }
    return sum;
}

// A whole tile in shared memory. Each thread copies what it will read itself, so no barrier is needed.
struct Stage {
    int4 row[ROWS][THREADS];

    __device__ void fetch(const int* __restrict__ x, int tile) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) __pipeline_memcpy_async(&row[r][threadIdx.x], x + index_of(tile, r), sizeof(int4));
        __pipeline_commit();
    }

    __device__ void read(Tile& tile) const {
#pragma unroll
        for (int r = 0; r < ROWS; r++) tile.row[r] = row[r][threadIdx.x];
    }
};

// A block takes tile after tile. While it looks back for the one that it holds, the next has been summed and the one after is fetched.
// It knows the prefix of its tile before, so it looks back no further than that.
//
// A tile is a ticket, not a function of blockIdx: whoever has tile t knows that running blocks have tiles 0 to t - 1.
// A block waits only for tiles before the one that it holds, and it has published that one. So the holder of the first unpublished tile
// waits for published tiles alone, and waiting ends.
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) scan(const int* __restrict__ x, int64_t* status, int* __restrict__ y, int n) {
    __shared__ Stage stage;
    __shared__ int of_warps[WARPS], of_look_back[WARPS], shared_ticket;
    auto tickets = reinterpret_cast<int*>(status++);
    const int tiles = ceil_div(n, TILE_VALUES), whole_tiles = n / TILE_VALUES;

    if (threadIdx.x == 0) shared_ticket = atomicAdd(tickets, 1);
    __syncthreads();
    int coming = shared_ticket;  // the tile on its way into the stage
    if (coming < whole_tiles) stage.fetch(x, coming);
    __syncthreads();
    int ticket = threadIdx.x == 0 ? atomicAdd(tickets, 1) : 0;

    Tile held;
    int held_tile = -1, held_below = 0, held_sum = 0;  // below: the sum of the warps below this one
    int summed = 0, prefix = 0;                        // the sum of tiles 0 to `summed` - 1
    while (held_tile < tiles) {
        // The next tile: scanned in registers, its sum published.
        const int next_tile = coming;
        Tile next;
        int sum = 0, next_sum;
        __pipeline_wait_prior(0);
        if (next_tile < tiles) {
            if (next_tile < whole_tiles) {
                stage.read(next);
            } else {
                next.load(x, next_tile, n);
            }
            sum = next.scan_warp();
        }
        if (threadIdx.x == 0) shared_ticket = ticket;
        const int next_below = sum_of_warps_below(of_warps, sum, &next_sum);
        if (threadIdx.x == 0 && next_tile < tiles) publish(status + next_tile, next_sum);

        // The stage is free for the tile after it.
        coming = shared_ticket;
        if (coming < whole_tiles) stage.fetch(x, coming);
        if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);  // arrives during the look-back

        // The held tile: its prefix, and its way to y.
        int between;
        sum_of_warps_below(of_look_back, __reduce_add_sync(~0u, look_back(status, summed, held_tile)), &between);
        prefix += between;
        if (held_tile >= 0) held.store(y, held_tile, prefix + held_below, n);
        prefix += held_sum, summed = held_tile + 1;
        held = next, held_tile = next_tile, held_below = next_below, held_sum = next_sum;
    }
}

LAUNCH(const int* x, int* y, int64_t* status, int n, cudaStream_t stream) {
    if (n > INT_MAX - TILE_VALUES) return cudaErrorInvalidValue;  // indices of the last tile would leave int
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    int device, sms;
    if (cudaError_t code = cudaGetDevice(&device)) return code;
    if (cudaError_t code = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return code;
    const int tiles = ceil_div(n, TILE_VALUES), places = sms * BLOCKS_PER_SM;
    if (cudaError_t code = cudaMemsetAsync(status, 0, (tiles + 1) * sizeof(int64_t), stream)) return code;
    const int blocks = tiles < places ? tiles : places;
    scan<<<blocks, THREADS, 0, stream>>>(x, status, y, n);
    return cudaGetLastError();
}
