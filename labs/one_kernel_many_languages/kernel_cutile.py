"""The kernel in cuTile: a tile is a row, and threads do not appear. compile_ahead.py makes cubins of it."""

import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

WIDE = 8192  # elements of the tile, so of the longest row


@ct.kernel
def quantized_norm(x, weight, y, scale):
    # Through the TMA, which is the default, a block would take all registers of an SM, and no two rows would be in flight.
    row, zeros = ct.bid(0), ct.PaddingMode.ZERO
    value = ct.astype(ct.load(x, (row, 0), (1, WIDE), padding_mode=zeros, allow_tma=False), ct.float32)
    weights = ct.astype(ct.load(weight, (0,), (WIDE,), padding_mode=zeros, allow_tma=False), ct.float32)
    n = value * ct.rsqrt(ct.sum(value * value, axis=1, keepdims=True) / x.shape[1] + 1e-6) * ct.reshape(weights, (1, WIDE))
    largest = ct.maximum(ct.max(ct.abs(n), axis=1, keepdims=True), 1e-12)
    ct.store(y, (row, 0), ct.astype(n * (448.0 / largest), ct.float8_e4m3fn), allow_tma=False)
    ct.store(scale, (row,), ct.reshape(largest / 448.0, (1,)), allow_tma=False)


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
