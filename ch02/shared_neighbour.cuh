// The neighbour of the current GPU: the first other GPU. Its work is in its
// default stream, which runs beside all streams of this GPU; events order the two.
#pragma once
#include "common/cuda/launch.cuh"

constexpr int LANES = 32;
constexpr int WARPS = 8;  // per block; one row per warp

// scores[r] = sum over c of x[r, c] * w[c]: what the neighbour does with rows that have arrived. `width` is a multiple of 4.
__global__ void score_rows(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ scores, int rows, int width) {
    const int row = blockIdx.x * WARPS + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    if (row >= rows) return;
    const float4* mine = reinterpret_cast<const float4*>(x + size_t(row) * width);
    float sum = 0;
    for (int c = lane; c < width / 4; c += LANES) {
        const float4 a = mine[c], b = reinterpret_cast<const float4*>(w)[c];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) scores[row] = sum;
}

// Lets the current device use the memory of `other`. Fails where no link can do that.
inline cudaError_t use_memory_of(int other) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) return error;
    cudaGetLastError();  // peer access was enabled already: clears that error
    return cudaSuccess;
}

// Makes `device` current until the end of the block.
class On {
  public:
    explicit On(int device) {
        cudaGetDevice(&before_);
        cudaSetDevice(device);
    }
    ~On() { cudaSetDevice(before_); }

  private:
    int before_;
};

struct Neighbour {
    int home, there;  // the devices
    cudaEvent_t ready, done;
    float *x, *w;  // rows and weights in the neighbour's memory

    cudaError_t make(const float* weights, int rows, int width, cudaStream_t caller) {
        int count;
        if (width % 4) return cudaErrorInvalidValue;  // rows of whole 16 bytes; cudaMalloc aligns x and w to 256 bytes
        cudaGetDevice(&home);
        if (cudaError_t error = cudaGetDeviceCount(&count)) return error;
        if (count < 2) return cudaErrorInvalidDevice;
        there = home == 0 ? 1 : 0;
        if (cudaError_t error = cudaEventCreateWithFlags(&ready, cudaEventDisableTiming)) return error;
        On on(there);
        if (cudaError_t error = cudaEventCreateWithFlags(&done, cudaEventDisableTiming)) return error;
        if (cudaError_t error = cudaMalloc(&x, sizeof(float) * rows * width)) return error;
        if (cudaError_t error = cudaMalloc(&w, sizeof(float) * width)) return error;
        if (cudaError_t error = cudaMemcpyPeerAsync(w, there, weights, home, sizeof(float) * width, caller)) return error;
        return cudaStreamSynchronize(caller);
    }

    // Each of the two GPUs may use the memory of the other.
    cudaError_t connect() const {
        if (cudaError_t error = use_memory_of(there)) return error;
        On on(there);
        return use_memory_of(home);
    }

    // What the neighbour gets from now on begins when the earlier work of `caller` is done.
    void after(cudaStream_t caller) const {
        cudaEventRecord(ready, caller);
        On on(there);
        cudaStreamWaitEvent(0, ready, 0);
    }

    // What `caller` gets from now on begins when the neighbour's earlier work is done.
    void before(cudaStream_t caller) const {
        {
            On on(there);
            cudaEventRecord(done, 0);
        }
        cudaStreamWaitEvent(caller, done, 0);
    }

    cudaError_t score(float* scores, int rows, int width) const {
        On on(there);
        score_rows<<<ceil_div(rows, WARPS), WARPS * LANES>>>(x, w, scores, rows, width);
        return cudaGetLastError();
    }

    // The neighbour copies `from`, in its memory, to this GPU.
    cudaError_t send_home(float* to, const float* from, size_t bytes) const {
        On on(there);
        return cudaMemcpyPeerAsync(to, home, from, there, bytes, 0);
    }

    cudaError_t drop() const {
        cudaEventDestroy(ready);
        On on(there);
        cudaEventDestroy(done);
        cudaFree(w);
        return cudaFree(x);
    }
};
