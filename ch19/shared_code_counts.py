"""How often each code and each scale of NVFP4 and of MXFP8 is used for the values of some tensors, and how exact they are."""

import torch

from common.block_formats import E2M1_MOST, E4M3_MOST, e8m0_values, mxfp8, mxfp8_restored, nvfp4, nvfp4_restored, unpacked


def in_nvfp4(x):
    """Codes, scale bytes, the largest magnitude that each block can hold, and what the codes stand for."""
    q = nvfp4(x)
    return unpacked(q.packed), q.scales.view(torch.uint8), E2M1_MOST * q.scales.float() * q.factor, nvfp4_restored(q)


def in_mxfp8(x, up):
    values, scales = mxfp8(x, up)
    return values.view(torch.uint8), scales, E4M3_MOST * e8m0_values(scales), mxfp8_restored(values, scales)


# By name: how many codes there are, and how a matrix [rows, k] is rounded.
FORMATS = {
    "NVFP4": (16, in_nvfp4),
    "MXFP8, scales rounded down": (256, lambda x: in_mxfp8(x, up=False)),
    "MXFP8, scales rounded up": (256, lambda x: in_mxfp8(x, up=True)),
}


def counted(name, matrices):
    """Counts of codes and of scale bytes over all `matrices`, float32 [rows, k], the share of values beyond the largest code, the error.

    The error is the root mean square of what rounding changes, over that of the values.
    """
    count, rounded = FORMATS[name]
    codes, scales = torch.zeros(count, dtype=torch.int64), torch.zeros(256, dtype=torch.int64)
    beyond = wrong = size = 0.0
    for x in matrices:
        code, scale, most, restored = rounded(x)
        codes += torch.bincount(code.flatten().long(), minlength=count)
        scales += torch.bincount(scale.flatten().long(), minlength=256)
        beyond += (x.unflatten(1, (most.shape[1], -1)).abs() > most[..., None]).sum().item()
        wrong, size = wrong + (restored - x).double().square().sum().item(), size + x.double().square().sum().item()
    values = int(codes.sum())
    return {"codes": codes.tolist(), "scales": scales.tolist(), "beyond": beyond / values, "error": (wrong / size) ** 0.5}
