"""What NVFP4 does to each weight matrix of a trained model: the largest scale, the share of each code value, the error.

    ./setup.sh python ch18/nvfp4_statistics.py --model byte_lm --svg build/nvfp4.svg

A weight becomes a code of 4 bits, 16 weights share a scale, and a matrix has one factor. A code's value times both is the weight again.
"""

import argparse
import sys
from pathlib import Path

import torch
from shared_nvfp4 import quantized, restored

from common.block_formats import E2M1, NVFP4_BLOCK, e2m1_values, unpacked
from common.tensor_files import read_tensors

ASSETS = Path(__file__).parents[1] / "common/models/assets"
MODELS = ("byte_lm", "byte_lm_draft")
CELL, ROW, NAMES = 62, 22, 190  # of the drawing, in its units
MOST_ERROR = 1.08 / 6  # of a block's largest weight: half of the gap from 4 to 6, and what rounding the scale adds


def statistics_of(w):
    """The largest scale, factor included; the share of codes of each size; and the mean and the largest error.

    w [rows, k], k a multiple of 16. Errors are of the mean weight, and of the largest weight of a block.
    """
    w = w.float()
    q = quantized(w)
    off, most = (restored(q) - w).abs(), w.unflatten(1, (-1, NVFP4_BLOCK)).abs().amax(-1, keepdim=True)
    sizes = e2m1_values(unpacked(q.packed)).abs()
    shares = [(sizes == size).float().mean().item() for size in E2M1]
    worst = (off.unflatten(1, (-1, NVFP4_BLOCK)) / most.clamp(min=1e-30)).max().item()
    return (q.scales.float().amax() * q.factor).item(), shares, (off.mean() / w.abs().mean()).item(), worst


def drawn(found):
    """Shares of codes as SVG: a row a matrix, a column a code's size, the darker the more codes."""
    width, height = NAMES + CELL * len(E2M1) + 10, ROW * (len(found) + 1) + 10
    heads = [f'<text x="{NAMES + CELL * (i + 0.5)}" y="16" text-anchor="middle">{size:g}</text>' for i, size in enumerate(E2M1)]
    rows = [f'<text x="{NAMES - 8}" y="16" text-anchor="end">share of codes, by size</text>']
    for number, (name, (_, shares, *_)) in enumerate(found.items()):
        y = ROW * (number + 1)
        rows.append(f'<text x="{NAMES - 8}" y="{y + 15}" text-anchor="end">{name}</text>')
        for i, share in enumerate(shares):
            x = NAMES + CELL * i
            rows.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{ROW - 2}" fill="#369" fill-opacity="{min(1, 3 * share):.2f}"/>')
            rows.append(f'<text x="{x + CELL / 2}" y="{y + 15}" text-anchor="middle">{100 * share:.1f} %</text>')
    box = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222"'
    lines = ["<title>Share of NVFP4 codes by size</title>", '<rect width="100%" height="100%" fill="white"/>', *heads, *rows]
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n' + "\n".join(lines) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="byte_lm")
    parser.add_argument("--svg", type=Path, help="draw the shares of codes into this file")
    chosen = parser.parse_args()
    weights = read_tensors((ASSETS / f"{chosen.model}.safetensors").read_bytes(), torch.device("cpu"))
    found = {name: statistics_of(w) for name, w in weights.items() if w.dim() == 2}
    print("Share of codes by size, in percent. Mean error: of the mean weight. Largest error: of the largest weight of its block.")
    print(f"{'matrix':<20}{'largest scale':>14}" + "".join(f"{size:>6g}" for size in E2M1) + f"{'mean error':>12}{'largest error':>15}")
    for name, (scale, shares, mean, worst) in found.items():
        codes = "".join(f"{100 * share:>6.1f}" for share in shares)
        print(f"{name:<20}{scale:>14.2e}{codes}{100 * mean:>10.1f} %{100 * worst:>13.1f} %")
    if chosen.svg:
        chosen.svg.parent.mkdir(parents=True, exist_ok=True)
        chosen.svg.write_text(drawn(found), encoding="utf-8")
        print(f"drawn in {chosen.svg}")
    wrong = [name for name, (*_, worst) in found.items() if not worst < MOST_ERROR]
    if wrong:
        print(
            f"nvfp4_statistics.py: found errors above {MOST_ERROR:.2f} of a block's largest weight in {', '.join(wrong)}", file=sys.stderr
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
