// Launches a product with persistent blocks or clusters: encodes the TMA's maps, and limits the grid to what runs at once.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/operands.cuh"
#include "common/cuda/tma.cuh"
#include "shared_tile.cuh"

// Rows per TMA request: loads of a and b, stores of c. Each row is 128 bytes.
struct Boxes {
    int a, b, c;
};

// Tensor maps of a, b and c, with swizzled boxes.
struct Maps {
    CUtensorMap a, b, c;
};

inline cudaError_t encode(Maps* maps, const Product& x, const Boxes& rows) {
    constexpr int WIDE = SWIZZLE_ROW / sizeof(Element);
    if (cudaError_t error = encode(&maps->a, Tiled<Element>{x.a, x.m, x.k, rows.a, WIDE, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    if (cudaError_t error = encode(&maps->b, Tiled<Element>{x.b, x.n, x.k, rows.b, WIDE, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    return encode(&maps->c, Tiled<Element>{x.c, x.m, x.n, rows.c, WIDE, CU_TENSOR_MAP_SWIZZLE_128B});
}

// Limits the grid to the clusters of `blocks` blocks that fit the GPU, one block per SM.
// The kernels here take more than half of an SM's shared memory, and `__launch_bounds__(THREADS, 1)` makes one block fit.
inline cudaError_t limit_to_multiprocessors(int* count, int blocks) {
    int device = 0, multiprocessors = 0;
    if (cudaError_t error = cudaGetDevice(&device)) return error;
    if (cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) return error;
    *count = min(*count, multiprocessors / blocks);
    return cudaSuccess;
}

// A grid of `count` blocks.
struct Blocks {
    int count, threads;
    size_t shared_bytes;
    cudaStream_t stream;

    // At most as many as run at once.
    template <typename... Parameters>
    cudaError_t limit(void (*)(Parameters...)) {
        return limit_to_multiprocessors(&count, 1);
    }

    template <typename... Parameters, typename... Arguments>
    cudaError_t launch(void (*kernel)(Parameters...), const Arguments&... arguments) const {
        kernel<<<count, threads, shared_bytes, stream>>>(arguments...);
        return cudaGetLastError();
    }
};

// A grid of `count` clusters of `blocks` blocks.
struct Clusters {
    int count, blocks, threads;
    size_t shared_bytes;
    cudaStream_t stream;

    // At most as many clusters as are co-resident on an idle GPU.
    // A cluster must lie in one GPC. A GPC consists of pairs of SMs, so SMs / 2 clusters of two fit. The number of its SMs may not divide
    // by 4 or 8, so for larger clusters the occupancy API is asked.
    template <typename... Parameters>
    cudaError_t limit(void (*kernel)(Parameters...)) {
        if (cudaError_t error = limit_to_multiprocessors(&count, blocks)) return error;
        if (blocks <= 2) return cudaSuccess;
        cudaLaunchAttribute size{};
        const cudaLaunchConfig_t config = configure(&size);
        int most = 0;
        const cudaError_t error = cudaOccupancyMaxActiveClusters(&most, kernel, &config);
        count = min(count, most);
        return error;
    }

    // For a kernel that spins on another cluster, before its first launch: fails unless all clusters that limit() leaves run at once.
    // It asks the occupancy API for clusters of any size. limit() spares each launch the question where the count of SMs answers it.
    template <typename... Parameters>
    cudaError_t require_together(void (*kernel)(Parameters...)) const {
        Clusters limited = *this;
        if (cudaError_t error = limited.limit(kernel)) return error;
        cudaLaunchAttribute size{};
        const cudaLaunchConfig_t config = limited.configure(&size);
        int most = 0;
        if (cudaError_t error = cudaOccupancyMaxActiveClusters(&most, kernel, &config)) return error;
        return most < limited.count ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
    }

    template <typename... Parameters, typename... Arguments>
    cudaError_t launch(void (*kernel)(Parameters...), const Arguments&... arguments) const {
        cudaLaunchAttribute size{};
        cudaLaunchConfig_t config = configure(&size);
        config.stream = stream;
        return cudaLaunchKernelEx(&config, kernel, arguments...);
    }

  private:
    cudaLaunchConfig_t configure(cudaLaunchAttribute* size) const {
        size->id = cudaLaunchAttributeClusterDimension;
        size->val.clusterDim.x = blocks;
        size->val.clusterDim.y = size->val.clusterDim.z = 1;
        cudaLaunchConfig_t config{};
        config.gridDim.x = count * blocks;
        config.blockDim.x = threads;
        config.dynamicSmemBytes = shared_bytes;
        config.attrs = size;
        config.numAttrs = 1;
        return config;
    }
};

// Launches kernel(a, b, c, m, n, k, more...), where a, b and c are maps, in as many of the grid's Blocks or Clusters as run at once.
template <typename Grid, typename... Parameters, typename... More>
cudaError_t launch_persistent(void (*kernel)(Parameters...), Grid grid, const Product& x, const Boxes& rows, const More&... more) {
    Maps maps;
    if (cudaError_t error = encode(&maps, x, rows)) return error;
    if (cudaError_t error = grid.limit(kernel)) return error;
    return grid.launch(kernel, maps.a, maps.b, maps.c, x.m, x.n, x.k, more...);
}
