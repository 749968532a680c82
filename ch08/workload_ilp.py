"""Frequency response of a FIR filter at given points of the unit circle: y[i] = sum over k of h[k] z[i]^k, complex, in float32.

Predicted: 32 taps take 264 cycles as one chain and 147 as four, as ptxas schedules them, and 25 more for shared memory.

Measured: RESULTS.md. The chains are as predicted; what is beside them takes longer.

Why: stalls of kind wait are 0.89 and 0.06 cycles for each of the 140 instructions of 32 taps (H200), as in the schedule.
That is 17.1 us for 4096 taps, and 9.5. What is left was predicted as 1.6 us, and is 4.7 in the baseline and 6.3 in the optimized side
(gpu__time_duration). A warp has 18 100 and 18 300 instructions. Times the stalls per instruction, that is 1.3 and 1.9 us for shared memory
(short_scoreboard), 0.6 and 0.9 for the tiles from memory (long_scoreboard), 0.3 and 0.6 for instructions (no_instruction), and 0.6 and 1.0
for other kinds and for instructions beside the chains. The rest, 1.9 and 1.7 us, lies before and after the warps.
The optimized side is far from its ceiling because a scheduler has one warp (sm__throughput is 57 %), and because Horner's rule takes
4 FMAs per tap where the work counts 2.
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
    return {"fp32_fma": 4 * points * taps, "dram_read": 4 * taps + 8 * points, "dram_write": 8 * points}


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
