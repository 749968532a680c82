// Inline PTX, whole: two kinds of load, a prefetch and two special registers that C++ has no name for. Compute capability 9.0 and above.
// mkdir -p build && nvcc -std=c++17 -O3 -arch=sm_90 ch09/inline_ptx_example.cu -o build/inline_ptx_example && build/inline_ptx_example
#include <vector>

#include "../ch06/shared_check.cuh"

constexpr int THREADS = 128;

// For what is read once and does not change while the kernel runs: no place in the L1, and 256 bytes to the L2 at a time.
__device__ uint4 load_once(const uint4* from) {
    uint4 x;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
    return x;
}

// For what others may write meanwhile: from the L2, where their writes arrive, and never a stale copy in the L1. The memory clobber keeps
// the compiler from moving it past other accesses.
__device__ uint4 load_from_l2(const uint4* from) {
    uint4 x;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from) : "memory");
    return x;
}

__device__ void prefetch(const void* from, int bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

// Not volatile: in a thread it is always the same.
__device__ unsigned lane() {
    unsigned id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
}

// Volatile: a thread may be moved to another SM.
__device__ unsigned sm() {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

// Each block copies THREADS groups of 16 bytes from either buffer.
__global__ void copy(const uint4* filled, const uint4* filling, uint4* out, unsigned* lanes, unsigned* sms, int groups) {
    const int first = blockIdx.x * THREADS, i = first + threadIdx.x;
    if (threadIdx.x == 0) prefetch(filling + first, THREADS * sizeof(uint4));  // on its way while the other is read
    out[i] = load_once(filled + i);
    out[groups + i] = load_from_l2(filling + i);
    lanes[i] = lane();
    if (threadIdx.x == 0) sms[blockIdx.x] = sm();
}

int main() {
    const int blocks = 1000, groups = blocks * THREADS, words = 4 * groups;
    std::vector<unsigned> in(2 * words), out(2 * words), lanes(groups), sms(blocks);
    for (int i = 0; i < 2 * words; i++) in[i] = 2654435761u * i;
    uint4 *in_device, *out_device;
    unsigned *lanes_device, *sms_device;
    CHECK(cudaMalloc(&in_device, 2 * words * sizeof(unsigned)));
    CHECK(cudaMalloc(&out_device, 2 * words * sizeof(unsigned)));
    CHECK(cudaMalloc(&lanes_device, groups * sizeof(unsigned)));
    CHECK(cudaMalloc(&sms_device, blocks * sizeof(unsigned)));
    CHECK(cudaMemcpy(in_device, in.data(), 2 * words * sizeof(unsigned), cudaMemcpyHostToDevice));
    copy<<<blocks, THREADS>>>(in_device, in_device + groups, out_device, lanes_device, sms_device, groups);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), out_device, 2 * words * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(lanes.data(), lanes_device, groups * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sms.data(), sms_device, blocks * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(in_device));
    CHECK(cudaFree(out_device));
    CHECK(cudaFree(lanes_device));
    CHECK(cudaFree(sms_device));

    int wrong = 0;
    for (int i = 0; i < 2 * words; i++) wrong += out[i] != in[i];
    for (int i = 0; i < groups; i++) wrong += lanes[i] != unsigned(i % 32);
    if (wrong > 0) {
        fprintf(stderr, "inline_ptx_example: %d of %d words and lanes are wrong; expected none\n", wrong, 2 * words + groups);
        return 1;
    }
    unsigned last = 0;
    for (unsigned id : sms) last = id > last ? id : last;
    printf("%d words are right, copied by %d blocks; the highest SM number seen is %u\n", 2 * words, blocks, last);
    return 0;
}
