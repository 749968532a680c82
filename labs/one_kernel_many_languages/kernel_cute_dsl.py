"""The kernel in CuTe DSL: a block has a row, a thread up to 32 elements of it. compile_ahead.py makes cubins of it."""

import operator

import cutlass
from cutlass import BFloat16, Float8E4M3FN, Float32, Int32, Int64, cute
from cutlass.cute.runtime import nullptr

THREADS, LANES, ELEMENTS, MOST = 256, 32, 8, 4  # 4 loads of 16 bytes per thread: rows of up to 8192 elements


@cute.jit
def over_block(value: Float32, join: cutlass.Constexpr, of_warps: cute.Tensor) -> Float32:
    """Every thread gets `join` over all of the block's values."""
    thread, _, _ = cute.arch.thread_idx()
    value = cute.arch.warp_reduction(value, join)
    cute.arch.sync_threads()  # a slow warp may still read what was there
    if thread % LANES == 0:
        of_warps[thread // LANES] = value
    cute.arch.sync_threads()
    value = of_warps[0]
    for warp in cutlass.range_constexpr(1, THREADS // LANES):
        value = join(value, of_warps[warp])
    return value


@cute.jit
def chunk(pointer: cute.Pointer, at: Int64) -> cute.Tensor:
    """Eight elements from `at` on: one access of a thread."""
    return cute.make_tensor((pointer + at).align(ELEMENTS * pointer.dtype.width // 8), cute.make_layout(ELEMENTS))


@cute.kernel
def quantized_norm(x: cute.Pointer, weight: cute.Pointer, y: cute.Pointer, scale: cute.Pointer, width: Int32):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    of_warps = cute.make_tensor(cute.arch.alloc_smem(Float32, THREADS // LANES, 16), cute.make_layout(THREADS // LANES))
    first = Int64(row) * width
    n = cute.make_rmem_tensor((ELEMENTS, MOST), Float32)
    n.fill(0.0)
    for i in cutlass.range_constexpr(MOST):
        at = (i * THREADS + thread) * ELEMENTS
        if at < width:
            n[None, i].store(chunk(x, first + at).load().to(Float32))
    values = n.load()
    squares = (values * values).reduce(cute.ReductionOp.ADD, 0.0, 0)
    root = cute.math.rsqrt(over_block(squares, operator.add, of_warps) / Float32(width) + 1e-6)
    for i in cutlass.range_constexpr(MOST):
        at = (i * THREADS + thread) * ELEMENTS
        if at < width:
            n[None, i].store(n[None, i].load() * (chunk(weight, Int64(at)).load().to(Float32) * root))
    largest = Float32(1e-12)
    for i in cutlass.range_constexpr(ELEMENTS * MOST):
        largest = cute.arch.fmax(largest, cute.arch.fmax(n[i], -n[i]))
    largest = over_block(largest, cute.arch.fmax, of_warps)
    stretch = 448.0 / largest
    if thread == 0:
        (scale + row).store(largest / 448.0)
    for i in cutlass.range_constexpr(MOST):
        at = (i * THREADS + thread) * ELEMENTS
        if at < width:
            chunk(y, first + at).store((n[None, i].load() * stretch).to(Float8E4M3FN))


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
