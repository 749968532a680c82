// Optimized: CUTLASS builds a wgmma kernel for Hopper from types.
// predicts: optimized = 0.36 x baseline  (256 cycles of wgmma for 128 x 128 x 32 products instead of 704 in the L1)
// predicts@8192: optimized = 0.36 x baseline  (the same cycles)
// proves: wgmma_f16_bf16
// has: tma_multicast
// proves: tma_store
// has: setmaxnreg_inc
// has: setmaxnreg_dec
// has: tma_load_tile
// has: mbarrier_expect_tx
// has: spills == 0
// nvcc: --expt-relaxed-constexpr -DNDEBUG
//
// NDEBUG matters: an assert is a call, and wgmma cannot stay in flight across a call, so ptxas would wait for each wgmma.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

namespace epilogue = cutlass::epilogue::collective;
namespace mainloop = cutlass::gemm::collective;

using Bf16 = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
using Arch = cutlass::arch::Sm90;
using TensorOp = cutlass::arch::OpClassTensorOp;
constexpr int ALIGNMENT = 16;  // bytes, of every row: what the TMA asks for

// A K-step of a tile loads 48 KB in 1024 cycles of products, 48 bytes per cycle. At 1.5 GHz the L2 delivers 50 per SM (9.84 TB/s): close.
// A cluster of two blocks, one below the other, needs the same 32 KB of b. Each block loads half of it for both: 32 bytes per cycle.
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;

// Cooperative: one warp loads, two warpgroups multiply 64 x 256 each, 128 sums per thread. Blocks are persistent: the next tile is loaded
// while the TMA stores the last one. `void` is the type of the matrix that beta would scale; there is none.
using Epilogue =
    epilogue::CollectiveBuilder<Arch, TensorOp, Tile, Cluster, epilogue::EpilogueTileAuto, float, float, void, RowMajor, 1, float, RowMajor,
                                ALIGNMENT / sizeof(float), cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
// As many stages as fit in what the epilogue leaves of shared memory: 4.
using Stages = mainloop::StageCountAutoCarveout<sizeof(Epilogue::SharedStorage)>;
using Mainloop =
    mainloop::CollectiveBuilder<Arch, TensorOp, Bf16, RowMajor, ALIGNMENT / sizeof(Bf16), Bf16, RowMajor, ALIGNMENT / sizeof(Bf16), float,
                                Tile, Cluster, Stages, cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
// A struct, not an alias, so that a profiler prints cutlass::device_kernel<Multiply> and not a page of template arguments.
struct Multiply : cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Mainloop, Epilogue> {};
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Multiply>;

// Strides in elements: from row to row, from column to column, and from matrix to matrix (0, as there is one). For b CUTLASS names the
// columns first, as if b were transposed.
LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k, cudaStream_t stream) {
    if (!aligned(ALIGNMENT, a, b, c)) return cudaErrorMisalignedAddress;
    Gemm::Arguments arguments;
    arguments.problem_shape = {m, n, k};
    arguments.mainloop = {reinterpret_cast<const Bf16*>(a), {k, {}, {}}, reinterpret_cast<const Bf16*>(b), {{}, n, {}}};
    arguments.epilogue = {{}, nullptr, {}, c, {n, {}, {}}};
    // 132 SMs run 66 clusters of 256 x 256 at once. They are visited 8 x 8, a square, which reads least of a and b.
    arguments.scheduler.max_swizzle_size = 8;
    const bool launched = Gemm::can_implement(arguments) == cutlass::Status::kSuccess &&  // checks that rows are multiples of 16 bytes
                          Gemm()(arguments, nullptr, stream) == cutlass::Status::kSuccess;
    return launched ? cudaSuccess : cudaErrorInvalidValue;
}
