"""What a format of dynamic_quantized_cache costs: bytes per token and head, and the error of values that come back.

./setup.sh python ch19/dynamic_quantized_cache.py --samples 4 --target-precision fp8

Rows have 128 elements, drawn from a normal distribution. Errors are root mean squares, over that of the rows.
"""

import argparse

import torch
from shared_aged_cache import old_of, recent_of

DIM, TOKENS = 128, 4096
FORMATS = {"fp8": recent_of, "int4": old_of}


def restored(precision, x):
    """`x`, [tokens, DIM], through the format `precision`, in float32, and the bytes that a token takes in it."""
    codes, scale = FORMATS[precision](x)
    values = codes.float() if precision == "fp8" else torch.cat([codes >> 4 * quarter & 15 for quarter in range(4)], -1).float() - 8
    return values * scale.unsqueeze(-1), codes.shape[-1] * codes.itemsize + scale.itemsize


def main():
    """Print a line per sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=4, help="how many caches are drawn")
    parser.add_argument("--target-precision", choices=FORMATS, default="fp8", help="the format of all tokens")
    options = parser.parse_args()
    if options.samples < 1:
        parser.error(f"--samples: found {options.samples}; expected at least 1")
    for sample in range(options.samples):
        x = torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(sample))
        back, size = restored(options.target_precision, x)
        error = ((back - x).square().mean() / x.square().mean()).sqrt()
        print(f"sample {sample}: {options.target_precision}, {size} bytes per token and head, not {2 * DIM} as in BF16; error {error:.4f}")


if __name__ == "__main__":
    main()
