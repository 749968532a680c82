"""The kernel in cuTile: a tile is a row, and threads do not appear. compile_ahead.py makes cubins of it."""

import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

WIDE = 8192  # elements of the tile, so of the longest row


def both(squares, largest, of_other_squares, of_other_largest):
    return squares + of_other_squares, ct.maximum(largest, of_other_largest)


# 8 warps, where the compiler would take 4: half the registers per thread.
@ct.kernel(num_worker_warps=8)
def quantized_norm(x, weight, y, scale):
    # By offset and mask, not by ct.load: its bounds check makes each load a branch, so that one load waits for the other.
    row, width, at = ct.bid(0), x.shape[1], ct.arange(WIDE, dtype=ct.int32)
    first, inside = ct.astype(row, ct.int64) * width, at < width
    value = ct.astype(x.get_raw_memory().load_offset(first + at, mask=inside), ct.float32)
    n = value * ct.astype(weight.get_raw_memory().load_offset(at, mask=inside), ct.float32)
    # The norm's root is a factor of the row: the maximum does not wait for it, so both reductions are one.
    squares, largest = ct.reduce((value * value, ct.abs(n)), 0, both, (0.0, 0.0), keepdims=True)
    root = ct.rsqrt(squares * quotient(1.0, ct.astype(width, ct.float32)) + 1e-6)
    largest = ct.maximum(largest * root, 1e-12)
    y.get_raw_memory().store_offset(first + at, ct.astype(n * (root * quotient(448.0, largest)), ct.float8_e4m3fn), mask=inside)
    ct.store(scale, (row,), largest * (1 / 448), allow_tma=False)


def quotient(a, b):
    return ct.truediv(a, b, rounding_mode=ct.RoundingMode.APPROX)


def argument(dtype, dimensions, multiple=1):
    """A contiguous tensor that overlaps no other; its last dimension is a multiple of so many elements."""
    outer = [None] * (dimensions - 1)
    return ArrayConstraint(
        dtype,
        dimensions,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[*outer, 1],
        stride_divisible_by=[*(multiple for _ in outer), 1],
        shape_divisible_by=[*(1 for _ in outer), multiple],
        base_addr_divisible_by=16,
    )


def intermediate(architecture):
    """Tile IR bytecode of the kernel, which tileiras makes a cubin of."""
    arguments = [argument(ct.bfloat16, 2, 8), argument(ct.bfloat16, 1, 8), argument(ct.float8_e4m3fn, 2, 8), argument(ct.float32, 1)]
    signature = KernelSignature(arguments, CallingConvention.cutile_python_v1(), symbol="quantized_norm")
    code = io.BytesIO()
    export_kernel(quantized_norm, [signature], code, gpu_code=architecture, output_format="tileir_bytecode")
    return code.getvalue()
