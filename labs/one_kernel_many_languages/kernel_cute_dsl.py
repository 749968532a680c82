"""The kernel in CuTe DSL: a block has a row, a thread up to 32 elements of it. compile_ahead.py makes cubins of it."""

import operator

import cutlass
from cutlass import BFloat16, Float8E4M3FN, Float32, Int32, Int64, cute
from cutlass.cute.runtime import nullptr

THREADS, LANES, ELEMENTS, MOST = 256, 32, 8, 4  # 4 loads of 16 bytes per thread: rows of up to 8192 elements
WARPS = THREADS // LANES


@cute.jit
def over_block(squares: Float32, largest: Float32, of_warps: cute.Tensor):
    """Every thread gets the sum and the maximum over all of the block's values."""
    thread, _, _ = cute.arch.thread_idx()
    squares = cute.arch.warp_reduction(squares, operator.add)
    largest = cute.arch.warp_reduction(largest, cute.arch.fmax)
    if thread % LANES == 0:
        of_warps[thread // LANES] = squares
        of_warps[WARPS + thread // LANES] = largest
    cute.arch.sync_threads()
    squares, largest = of_warps[0], of_warps[WARPS]
    for warp in cutlass.range_constexpr(1, WARPS):
        squares = squares + of_warps[warp]
        largest = cute.arch.fmax(largest, of_warps[WARPS + warp])
    return squares, largest


@cute.jit
def fetch(pointer: cute.Pointer, first: Int64, width: Int32) -> cute.Tensor:
    """A thread's elements of a row, 0 past its end: an access of 16 bytes for every eight."""
    thread, _, _ = cute.arch.thread_idx()
    values = cute.make_rmem_tensor((ELEMENTS, MOST), BFloat16)
    values.fill(0.0)
    for i in cutlass.range_constexpr(MOST):
        at = (i * THREADS + thread) * ELEMENTS
        if at < width:
            values[None, i].store(cute.make_tensor((pointer + first + at).align(16), cute.make_layout(ELEMENTS)).load())
    return values


@cute.kernel
def quantized_norm(x: cute.Pointer, weight: cute.Pointer, y: cute.Pointer, scale: cute.Pointer, width: Int32):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    of_warps = cute.make_tensor(cute.arch.alloc_smem(Float32, 2 * WARPS, 16), cute.make_layout(2 * WARPS))
    first = Int64(row) * width
    loaded, weights = fetch(x, first, width), fetch(weight, Int64(0), width)  # all in flight before any is used
    values = loaded.load().to(Float32)
    n = cute.make_rmem_tensor((ELEMENTS, MOST), Float32)
    n.store(values * weights.load().to(Float32))
    largest = Float32(0.0)
    for i in cutlass.range_constexpr(ELEMENTS * MOST):
        largest = cute.arch.fmax(largest, cute.arch.fmax(n[i], -n[i]))
    # The norm's root is a factor of the row: the maximum does not wait for it, so both reductions are one.
    squares, largest = over_block((values * values).reduce(cute.ReductionOp.ADD, 0.0, 0), largest, of_warps)
    root = cute.math.rsqrt(squares * cute.arch.rcp_approx(Float32(width)) + 1e-6)
    largest = cute.arch.fmax(largest * root, 1e-12)
    stretch = root * 448.0 * cute.arch.rcp_approx(largest)
    if thread == 0:
        (scale + row).store(largest * (1 / 448))
    for i in cutlass.range_constexpr(MOST):
        at = (i * THREADS + thread) * ELEMENTS
        if at < width:
            rounded = cute.make_rmem_tensor(ELEMENTS, Float8E4M3FN)
            rounded.store((n[None, i].load() * stretch).to(Float8E4M3FN))
            # As two words: of single bytes the compiler would assemble them one by one.
            words, place = cute.recast_ptr(rounded.iterator, dtype=Int32), cute.recast_ptr((y + first + at).align(8), dtype=Int32)
            cute.make_tensor(place, cute.make_layout(2)).store(cute.make_tensor(words, cute.make_layout(2)).load())


@cute.jit
def launch(x: cute.Pointer, weight: cute.Pointer, y: cute.Pointer, scale: cute.Pointer, rows: Int32, width: Int32):
    quantized_norm(x, weight, y, scale, width).launch(grid=[rows, 1, 1], block=[THREADS, 1, 1])


def cubin(architecture: str, folder: str) -> bytes:
    """The kernel's machine code, of which a copy stays in `folder`."""
    pointers = [
        nullptr(dtype, cute.AddressSpace.gmem, assumed_align=alignment)
        for dtype, alignment in ((BFloat16, 16), (BFloat16, 16), (Float8E4M3FN, 8), (Float32, 4))
    ]
    options = f"--gpu-arch={architecture} --keep-cubin --dump-dir={folder}"
    return cute.compile(launch, *pointers, Int32(1), Int32(ELEMENTS), options=options).__cubin__
