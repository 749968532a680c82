"""Numbers in blocks that share a scale, bit for bit: NVFP4, and MXFP4 and MXFP8 of the OCP Microscaling Formats (MX) 1.0.

E2M1 codes are 4 bits: a sign, two of exponent, one of mantissa; two lie in a byte, the first in the low bits. An E8M0 scale is a byte b,
which means 2**(b - 127); 255 is NaN. Values are rounded to nearest, ties to even, and saturate.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import torch

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_MOST = E2M1[-1]
E4M3_MOST = 448.0
NVFP4_BLOCK = 16
MX_BLOCK = 32
E8M0_BIAS = 127
_E8M0_NAN = 255
_E4M3_LEAST = 2.0**-9
# A size above the i-th of these has a code above i. At a tie the code with an even mantissa wins, so at every other one the larger does.
_ABOVE = tuple(
    (low + high) / 2 if code % 2 == 0 else math.nextafter((low + high) / 2, 0) for code, (low, high) in enumerate(itertools.pairwise(E2M1))
)
_OF_CODES = (*E2M1, *(-value for value in E2M1))
_POWERS = (*(2.0 ** (byte - E8M0_BIAS) for byte in range(_E8M0_NAN)), math.nan)


_tables: dict[tuple[tuple[float, ...], torch.dtype, torch.device], torch.Tensor] = {}


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _copied(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    key = (values, dtype, device)
    if key not in _tables:  # not by functools.cache, which torch.compile warns of
        _tables[key] = torch.tensor(values, dtype=dtype, device=device)
    return _tables[key]


def _table(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """`values` on `device`, copied once: a CUDA graph that is being recorded cannot copy from the host, and compiled code need not.

    A function that torch.compile compiles as a whole may ask for one table, no more.
    """
    table: torch.Tensor = _copied(values, dtype, device)
    return table


def _blocks(x: torch.Tensor, size: int) -> torch.Tensor:
    """[..., k / size, size] of [..., k]."""
    blocks: torch.Tensor = x.unflatten(-1, (-1, size))
    return blocks


def e2m1_codes(x: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
    """The codes of `x`, uint8 of its shape. With `noise`, uniform in [0, 1), rounding is stochastic: the mean is the value itself."""
    size = x.abs().float().clamp(max=E2M1_MOST)
    if noise is None:
        codes = torch.bucketize(size.double(), _table(_ABOVE, torch.float64, x.device))
    else:
        values = _table(E2M1, torch.float32, x.device)
        low = torch.bucketize(size, values, right=True).sub_(1).clamp_(max=len(E2M1) - 2)
        codes = low + (noise * (values[low + 1] - values[low]) < size - values[low])
    return (codes + 8 * torch.signbit(x)).to(torch.uint8)


def e2m1_values(codes: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What codes, of any integer type, mean."""
    return _table(_OF_CODES, dtype, codes.device).index_select(0, codes.int().flatten()).view(codes.shape)


def packed(codes: torch.Tensor) -> torch.Tensor:
    """Codes [..., k] two a byte, uint8 [..., k / 2]."""
    low, high = codes[..., ::2], codes[..., 1::2]
    return (low | high << 4).contiguous()


def unpacked(both: torch.Tensor) -> torch.Tensor:
    """Codes [..., k] of bytes [..., k / 2]."""
    return torch.stack((both & 15, both >> 4), -1).flatten(-2)


class Nvfp4(NamedTuple):
    """Bytes [rows, k / 2], scales [rows, k / 16] in float8_e4m3fn, and `factor` [1] in float32."""

    packed: torch.Tensor
    scales: torch.Tensor
    factor: torch.Tensor


def nvfp4(x: torch.Tensor, noise: torch.Tensor | None = None) -> Nvfp4:
    """The nearest codes for `x`, [rows, k]: the largest of each 16 becomes about 6, that of the tensor 6 * 448 * factor.

    Raises RuntimeError where k is no multiple of 16. `noise`: as for `e2m1_codes`.
    """
    scales, factor = _nvfp4_scales(_blocks(x.float(), NVFP4_BLOCK).abs().amax(-1))
    scaled = x.float() / (scales.float() * factor).repeat_interleave(NVFP4_BLOCK, 1)
    return Nvfp4(packed(e2m1_codes(scaled, noise)), scales, factor)


def _nvfp4_scales(most: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """E4M3 scales for blocks with the largest magnitudes `most`, of its shape, and the tensor's factor [1]."""
    factor = (most.amax() / (E2M1_MOST * E4M3_MOST)).clamp(min=2.0**-100).view(1)
    return (most / (E2M1_MOST * factor)).clamp(min=_E4M3_LEAST).to(torch.float8_e4m3fn), factor  # never 0: no division by it


def nvfp4_restored(q: Nvfp4) -> torch.Tensor:
    """What codes stand for, [rows, k] in float32."""
    blocks = _blocks(e2m1_values(unpacked(q.packed)), NVFP4_BLOCK)
    return (blocks * q.scales.float()[..., None]).flatten(-2) * q.factor


def nvfp4_rounded(x: torch.Tensor, noise: torch.Tensor | None = None, *, square: bool = False) -> torch.Tensor:
    """`x`, [rows, k], rounded to NVFP4 along k, in its own dtype. `square`: a scale for each 16 x 16, the same along rows and columns."""
    most = _blocks(x.float(), NVFP4_BLOCK).abs().amax(-1)
    if square:
        most = most.unflatten(0, (-1, NVFP4_BLOCK)).amax(1).repeat_interleave(NVFP4_BLOCK, 0)
    scales, factor = _nvfp4_scales(most)
    unit = (scales.float() * factor).repeat_interleave(NVFP4_BLOCK, 1)
    return (e2m1_values(e2m1_codes(x.float() / unit, noise)) * unit).to(x.dtype)


def e8m0_scales(most: torch.Tensor, exponent: int) -> torch.Tensor:
    """Bytes for blocks with the largest magnitudes `most`: the power of two at or below it, over 2**exponent (MX 1.0, section 6.3).

    `exponent` is that of the largest value of an element's format: 2 for E2M1, 8 for E4M3.
    """
    power = torch.frexp(most.float()).exponent - 1 - exponent + E8M0_BIAS
    return torch.where(most.isfinite(), torch.where(most > 0, power.clamp(0, _E8M0_NAN - 1), 0), _E8M0_NAN).to(torch.uint8)


def e8m0_values(scales: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What bytes mean."""
    return _table(_POWERS, dtype, scales.device)[scales.int()]


def mxfp8(x: torch.Tensor, up: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """`x`, [..., k], as float8_e4m3fn [..., k] and E8M0 scales, uint8 [..., k / 32]. Raises RuntimeError where 32 does not divide k.

    With `up` a scale is doubled where a block's largest value would saturate: the least power of two at or above that value over 448.
    """
    blocks = _blocks(x.float(), MX_BLOCK)
    most = blocks.abs().amax(-1)
    scales = e8m0_scales(most, 8)
    unit = e8m0_values(scales)
    if up:
        saturates = most > E4M3_MOST * unit
        scales, unit = scales + saturates.to(torch.uint8), torch.where(saturates, 2 * unit, unit)
    scaled = (blocks / unit[..., None]).clamp(-E4M3_MOST, E4M3_MOST)
    return scaled.to(torch.float8_e4m3fn).flatten(-2), scales


def mxfp8_restored(values: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What `mxfp8` returned stands for, [..., k]."""
    blocks = _blocks(values.float(), MX_BLOCK)
    return (blocks * e8m0_values(scales)[..., None]).flatten(-2).to(dtype)


def mxfp4_restored(both: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Weights in `dtype`, [..., k], of bytes [..., k / 2] and E8M0 scales [..., k / 32]; every value is one of bfloat16's."""
    blocks = _blocks(e2m1_values(unpacked(both), dtype), MX_BLOCK)
    return (blocks * e8m0_values(scales, dtype)[..., None]).flatten(-2)


def mxfp4_drawn(rand: Any, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random bytes and scales of MXFP4 weights of `shape`, which keep the size of what they multiply. `rand` is a workload's."""
    middle = E8M0_BIAS - round(math.log2(3 * shape[-1] ** 0.5))  # e2m1 values have a root mean square of 3
    blocks = rand.integers(*shape[:-1], shape[-1] // 2, low=0, high=256, dtype=torch.uint8)
    return blocks, rand.integers(*shape[:-1], shape[-1] // MX_BLOCK, low=middle - 1, high=middle + 2, dtype=torch.uint8)
