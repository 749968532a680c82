// CUTLASS, whole and at its shortest: a product of bf16 matrices in a type and a call, on an A100 and after, checked by CUTLASS's own.
// src=$(echo .venv/lib/python3*/site-packages/cutlass_library/source) && mkdir -p build
// nvcc -std=c++17 -O3 -arch=sm_80 -isystem $src/include -isystem $src/tools/util/include -o build/cutlass_gemm ch09/cutlass_gemm_example.cu
// build/cutlass_gemm
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/util/reference/host/gemm.h>

#include <vector>

#include "../ch06/shared_check.cuh"

using Bf16 = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;

// What CUTLASS takes for mma.sync if no more is said: tiles of 128 x 256 x 64, three of them in 144 KB of shared memory. wgmma and the TMA
// take the types of optimized_cutlass_gemm.cu.
using Gemm = cutlass::gemm::device::Gemm<Bf16, RowMajor, Bf16, RowMajor, float, RowMajor, float, cutlass::arch::OpClassTensorOp,
                                         cutlass::arch::Sm80>;
using OnTheHost = cutlass::reference::host::Gemm<Bf16, RowMajor, Bf16, RowMajor, float, RowMajor, float, float>;

int main() {
    const cutlass::gemm::GemmCoord shape(520, 264, 136);  // no whole tiles, but rows of whole 16 bytes
    const int m = shape.m(), n = shape.n(), k = shape.k();
    // Small integers: their products and sums are exact in any order.
    std::vector<Bf16> a(m * k), b(k * n);
    for (int i = 0; i < m * k; i++) a[i] = Bf16(2654435761u * i % 17 - 8.0f);
    for (int i = 0; i < k * n; i++) b[i] = Bf16(2246822519u * i % 17 - 8.0f);
    std::vector<float> c(m * n), expected(m * n);
    OnTheHost()(shape, 1.0f, {a.data(), k}, {b.data(), n}, 0.0f, {expected.data(), n});

    Bf16 *a_device, *b_device;
    float* c_device;
    CHECK(cudaMalloc(&a_device, a.size() * sizeof(Bf16)));
    CHECK(cudaMalloc(&b_device, b.size() * sizeof(Bf16)));
    CHECK(cudaMalloc(&c_device, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(a_device, a.data(), a.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b_device, b.data(), b.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
    // c = 1 * a b + 0 * c; a matrix is a pointer and the elements from a row to the next.
    const cutlass::Status status = Gemm()({shape, {a_device, k}, {b_device, n}, {c_device, n}, {c_device, n}, {1.0f, 0.0f}});
    if (status != cutlass::Status::kSuccess) {
        fprintf(stderr, "cutlass_gemm_example: found %s; expected a launch\n", cutlassGetStatusString(status));
        return 1;
    }
    CHECK(cudaMemcpy(c.data(), c_device, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(a_device));
    CHECK(cudaFree(b_device));
    CHECK(cudaFree(c_device));

    int wrong = 0;
    for (int i = 0; i < m * n; i++) wrong += !(c[i] == expected[i]);
    if (wrong > 0) {
        fprintf(stderr, "cutlass_gemm_example: %d of %d sums are wrong; expected none\n", wrong, m * n);
        return 1;
    }
    printf("%d sums of %d products are right\n", m * n, k);
    return 0;
}
