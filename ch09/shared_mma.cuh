// Three warp-wide instructions for tensor cores (compute capability 8.0 and above). Hopper's full rate takes wgmma.
#pragma once

// Loads four 8 x 8 matrices of 16-bit elements. Lane 8 * i + r gives the address of row r of matrix i; each lane gets, of each matrix, 2
// elements of row lane / 4.
__device__ void ldmatrix(unsigned (&to)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))));
}

// The same, transposed: a lane gets 2 elements of column lane / 4.
__device__ void ldmatrix_transposed(unsigned (&to)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))));
}

// c += a * b, for 16 x 16 of a and 16 x 8 of b.
__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
