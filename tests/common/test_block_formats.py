"""Block formats, on all codes: values, nearest codes, scales, and what a block restores to."""

import math
from fractions import Fraction

import pytest
import torch

from common import block_formats as formats

CODES = torch.arange(16, dtype=torch.uint8)


def by_definition(code):
    """An E2M1 code's value by its bits: sign, two of exponent with a bias of 1, one of mantissa."""
    sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
    size = Fraction(mantissa, 2) if exponent == 0 else (1 + Fraction(mantissa, 2)) * Fraction(2) ** (exponent - 1)
    return float(-size if sign else size)


def test_all_16_codes_mean_what_their_bits_say():
    assert formats.e2m1_values(CODES).tolist() == [by_definition(code) for code in range(16)]
    assert torch.equal(formats.e2m1_codes(formats.e2m1_values(CODES)), CODES)  # -0 keeps its sign


@pytest.mark.parametrize("code", range(7))
def test_ties_go_to_the_even_code_and_all_else_to_the_nearest(code):
    low, high = (by_definition(each) for each in (code, code + 1))
    middle = torch.tensor((low + high) / 2)
    below, above = (torch.nextafter(middle, torch.tensor(to)) for to in (0.0, math.inf))
    found = formats.e2m1_codes(torch.stack((below, middle, above))).tolist()
    assert found == [code, code + code % 2, code + 1]


def test_values_beyond_the_largest_saturate():
    assert formats.e2m1_values(formats.e2m1_codes(torch.tensor([7.0, -1e30]))).tolist() == [6.0, -6.0]


def test_stochastic_codes_are_neighbours_and_right_on_average():
    x = torch.linspace(-6, 6, 97)
    noise = (torch.arange(1000) + 0.5)[:, None] / 1000
    values = formats.e2m1_values(formats.e2m1_codes(x.expand(1000, -1), noise.expand(-1, 97)))
    assert torch.allclose(values.mean(0), x, atol=2e-3)
    assert values.unique(dim=0).shape[0] > 1
    assert (values.amax(0) - values.amin(0)).max() <= 2


def test_bytes_hold_two_codes_and_the_first_lies_in_the_low_bits():
    every = torch.arange(256, dtype=torch.uint8).view(1, -1)
    codes = formats.unpacked(every)
    assert torch.equal(formats.packed(codes), every)
    assert codes[0, 2 * 0x4B : 2 * 0x4B + 2].tolist() == [0xB, 0x4]


def test_all_256_scales_are_powers_of_two_or_nan():
    every = torch.arange(256, dtype=torch.uint8)
    values = formats.e8m0_values(every, torch.float64)
    assert values[:255].tolist() == [2.0 ** (byte - 127) for byte in range(255)]
    assert values[255].isnan()
    assert torch.equal(values.float()[:255], every.view(torch.float8_e8m0fnu).float()[:255])  # as torch has it


def test_a_scale_is_the_power_of_two_at_or_below_the_largest():
    most = torch.tensor([0.0, 448.0, 447.0, 256.0, 255.9, 1.0, 2.0**-140, math.inf, math.nan])
    assert formats.e8m0_scales(most, 8).tolist() == [0, 127, 127, 127, 126, 119, 0, 255, 255]


def test_all_256_values_of_e4m3_survive_a_block_scaled_by_one():
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    finite = every[every.float().isfinite()].float()
    blocks = torch.cat((finite, torch.zeros(-len(finite) % 31))).view(-1, 31)
    values, scales = formats.mxfp8(torch.cat((blocks, torch.full((len(blocks), 1), 448.0)), 1))
    assert (scales == 127).all()
    assert torch.equal(values.float()[:, :31], blocks)


def test_mxfp8_is_as_exact_as_three_bits_of_mantissa():
    x = torch.randn(64, 96, generator=torch.Generator().manual_seed(1)) * torch.logspace(-20, 20, 64)[:, None]
    values, scales = formats.mxfp8(x)
    assert scales.shape == (64, 3)
    error = (formats.mxfp8_restored(values, scales) - x).abs().view(64, 3, 32).amax(-1)
    # Those between 448 and 512 times the scale saturate: off by up to an eighth. All else is rounded by a sixteenth.
    assert (error <= x.view(64, 3, 32).abs().amax(-1) / 8).all()


def test_nvfp4_restores_what_is_a_code_times_its_scales():
    exact = formats.e2m1_values(CODES).repeat(3, 4) * torch.tensor([448.0, 1.0, 0.25])[:, None]
    held = formats.nvfp4(exact)
    assert held.factor.item() == 1.0
    assert torch.equal(formats.nvfp4_restored(held), exact)
    assert torch.equal(formats.nvfp4_rounded(exact), exact)


def test_square_blocks_round_alike_along_rows_and_columns():
    x = torch.randn(48, 32, generator=torch.Generator().manual_seed(2))
    assert torch.equal(formats.nvfp4_rounded(x, square=True), formats.nvfp4_rounded(x.T.contiguous(), square=True).T)
    assert not torch.equal(formats.nvfp4_rounded(x), formats.nvfp4_rounded(x.T.contiguous()).T)


def test_zeros_stay_zeros():
    zeros = torch.zeros(16, 32)
    assert torch.equal(formats.nvfp4_rounded(zeros), zeros)
    assert torch.equal(formats.mxfp8_restored(*formats.mxfp8(zeros)), zeros)


def test_mxfp4_restores_codes_times_powers_of_two():
    both = torch.arange(16, dtype=torch.uint8).view(1, 16)
    restored = formats.mxfp4_restored(both, torch.tensor([[130]], dtype=torch.uint8), torch.bfloat16)
    assert restored.dtype == torch.bfloat16
    assert torch.equal(restored[0, ::2].float(), formats.e2m1_values(CODES) * 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("up", [False, True])
def test_compiled_mxfp8_has_the_same_values(up):
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(5)) * torch.logspace(-30, 30, 64)[:, None]
    x[3] = 0
    x[5, 7] = math.inf
    values, scales = formats.mxfp8(x, up)
    found = torch.compile(formats.mxfp8, fullgraph=True, dynamic=False)(x, up)
    torch.testing.assert_close(found[0].float(), values.float(), rtol=0, atol=0, equal_nan=True)  # a NaN has either sign
    assert torch.equal(found[1], scales)
