"""Frequency response of a FIR filter at given points of the unit circle: y[i] = sum over k of h[k] z[i]^k, complex, in float32.

Expected 1.7x, and 1.37x on an H200. The schedule is the expected one: stalls of kind wait are 0.89 and 0.06 cycles for each of the 140
instructions of 32 taps, which is what 264 and 147 cycles leave. 128 times 32 taps so are 17.1 us and 9.5. The rest was taken to be 1.6 us,
25 cycles for every 32 taps, and is 4.9 in the baseline and 6.4 in the optimized side (gpu__time_duration, 22.0 and 15.9): the launch, two
tiles that come from memory while nothing else is to do, and shared memory, which other kinds of stalls would tell apart. That rest, in
which a scheduler has no other warp, is what stops the optimized side at 32 %: sm__throughput is 57 %, and Horner's rule takes 4 FMAs a tap
where the work counts 2.
"""

import math

import torch

from common import Spec, Workload


def inputs(rand, points, taps):
    h = rand.normal(taps, std=taps**-0.5)  # responses of unit scale
    angle = rand.uniform(points, low=0.05, high=math.pi - 0.05)  # beside 1 and -1 the roundings of Horner's rule all go one way
    return {"h": h, "z": torch.stack((angle.cos(), angle.sin()), dim=1)}


def outputs(points, taps):
    return {"y": Spec((points, 2), torch.float32)}


def reference(h, z, taps):
    powers = torch.view_as_complex(z)[:, None] ** torch.arange(taps, device=z.device)
    return torch.view_as_real(powers @ h.to(powers.dtype))


def work(points, taps):
    # A tap times a power of z, added: 2 FMAs, wherever the power comes from.
    return {"fp32": 4 * points * taps, "dram_read": 4 * taps + 8 * points, "dram_write": 8 * points}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"points": 16384, "taps": 4096},  # few points, with much to do for each: a warp for each scheduler of an H200
    check_at=(
        {"points": 1, "taps": 1},
        {"points": 3, "taps": 5},
        {"points": 129, "taps": 1000},  # two of the four chains have no tap
        {"points": 128, "taps": 2048},
        {"points": 130, "taps": 4099},
    ),
    work=work,
    # The baseline's FMAs, emulated, are off by 1e-5 in the worst of 14 draws of 16384 responses to 4096 taps; the median is 9e-7.
    rtol=0.0,
    atol=2e-5,
)
