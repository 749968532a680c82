// Baseline: three kernels: sum tiles, scan the sums, rescan every tile.
// allows: grid
// scratch: int sums[n / 8192 + 1]
#include "shared_tile_scan.cuh"

constexpr int SCANNERS = 1024;

__global__ void __launch_bounds__(THREADS) sum_tiles(const int* __restrict__ x, int* __restrict__ sums, int n) {
    __shared__ int of_warps[WARPS];
    Tile tile;
    tile.load(x, blockIdx.x, n);
    int total;
    sum_of_warps_below(of_warps, __reduce_add_sync(~0u, tile.sum()), &total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// In place: sums[t] becomes the sum of all tiles before t.
__global__ void __launch_bounds__(SCANNERS) scan_sums(int* __restrict__ sums, int tiles) {
    __shared__ int of_warps[LANES];
    int before = 0;
    for (int first = 0; first < tiles; first += SCANNERS) {
        const int at = first + threadIdx.x, own = at < tiles ? sums[at] : 0, up_to_lane = warp_scan(own);
        if (threadIdx.x % LANES == LANES - 1) of_warps[threadIdx.x / LANES] = up_to_lane;
        __syncthreads();
        const int up_to_warp = warp_scan(of_warps[threadIdx.x % LANES]), warp = threadIdx.x / LANES;
        const int warps_before = __shfl_sync(~0u, up_to_warp, warp - 1 & LANES - 1);
        if (at < tiles) sums[at] = before + (warp ? warps_before : 0) + up_to_lane - own;
        before += __shfl_sync(~0u, up_to_warp, LANES - 1);
        __syncthreads();
    }
}

__global__ void __launch_bounds__(THREADS)
    scan_tiles(const int* __restrict__ x, const int* __restrict__ before, int* __restrict__ y, int n) {
    __shared__ int of_warps[WARPS];
    Tile tile;
    tile.load(x, blockIdx.x, n);
    int total;
    const int below = sum_of_warps_below(of_warps, tile.scan_warp(), &total);
    tile.store(y, blockIdx.x, before[blockIdx.x] + below, n);
}

LAUNCH(const int* x, int* y, int* sums, int n, cudaStream_t stream) {
    if (n > INT_MAX - TILE_VALUES) return cudaErrorInvalidValue;  // indices of the last tile would leave int
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    const int tiles = ceil_div(n, TILE_VALUES);
    sum_tiles<<<tiles, THREADS, 0, stream>>>(x, sums, n);
    scan_sums<<<1, SCANNERS, 0, stream>>>(sums, tiles);
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, sums, y, n);
    return cudaGetLastError();
}
