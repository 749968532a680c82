// Baseline: a bounce: copied to the host's memory, sent from there to the host's memory, and copied to the GPU.
// needs: rdma
// instead: ch04:symmetric_memory
// allows: sync
// scratch: __nv_bfloat16 packed[sent * elements]
#include "ch04/shared_pack_blocks.cuh"
#include "ch04/shared_rdma_card.cuh"

struct State {
    RdmaCard card;
    void *leaves, *arrives;
};

PREPARE(int sent, int elements, void** state) {
    State* made = new State;
    *state = made;
    size_t bytes = size_t(sent) * elements * sizeof(__nv_bfloat16);
    if (!made->card.open()) return cudaErrorNotSupported;
    if (cudaError_t error = cudaMallocHost(&made->leaves, bytes)) return error;
    return cudaMallocHost(&made->arrives, bytes);
}

LAUNCH(const __nv_bfloat16* cache, const int* table, __nv_bfloat16* packed, __nv_bfloat16* y, int sent, int elements, void* state,
       cudaStream_t stream) {
    State& here = *static_cast<State*>(state);
    size_t bytes = size_t(sent) * elements * sizeof(__nv_bfloat16);
    pack<<<sent, THREADS, 0, stream>>>(cache, table, packed, elements);
    cudaMemcpyAsync(here.leaves, packed, bytes, cudaMemcpyDeviceToHost, stream);
    if (cudaError_t error = cudaStreamSynchronize(stream)) return error;
    if (!here.card.write(here.leaves, here.arrives, bytes)) return cudaErrorNotSupported;
    return cudaMemcpyAsync(y, here.arrives, bytes, cudaMemcpyHostToDevice, stream);
}

FINISH(void* state) {
    State* here = static_cast<State*>(state);
    void *leaves = here->leaves, *arrives = here->arrives;
    delete here;  // the card first, with which they are registered
    cudaFreeHost(leaves);
    return cudaFreeHost(arrives);
}
