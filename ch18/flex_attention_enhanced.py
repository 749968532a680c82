"""What the mask of ch18:flex_attention is worth: window after window, the blocks it keeps, and the gain over a dense mask.

    ./setup.sh python ch18/flex_attention_enhanced.py --window 512 --window 2048

Runs both sides of the pair, checks them against its reference, and compares the compiled kernel's time with what its blocks predict from
the first window. Exit 1 where an answer is wrong.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn.attention.flex_attention import create_block_mask
from workload_flex_attention import lengths_of

from common.python.child.sides.alone import run_alone, script_device

FOLDER = Path(__file__).parent


def share_kept(tokens, documents, window):
    """The share of blocks that a query of the pair's mask may see, on a CPU."""
    document = torch.cat([torch.full((length,), i) for i, length in enumerate(lengths_of(tokens, documents))])

    def seen(_batch, _head, query, key):
        return (document[query] == document[key]) & (query >= key) & (query - key < window)

    return 1 - create_block_mask(seen, None, None, tokens, tokens, device="cpu").sparsity() / 100


def main():
    device = script_device()
    on_gpu = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16384 if on_gpu else 512)
    parser.add_argument("--documents", type=int, default=8 if on_gpu else 2)
    parser.add_argument("--heads", type=int, default=16 if on_gpu else 2)
    parser.add_argument("--dim", type=int, default=128 if on_gpu else 16, help="elements a head: a power of two, at least 16")
    parser.add_argument("--window", type=int, action="append", help="may be given several times")
    chosen = parser.parse_args()
    windows = chosen.window or ([8192, 2048, 512, 128] if on_gpu else [512, 128])
    if min(chosen.tokens, chosen.documents, chosen.heads, *windows) < 1 or chosen.documents > chosen.tokens:
        parser.error("found a size below 1, or more documents than tokens; expected sizes of at least 1, and a token a document")
    if chosen.dim < 16 or chosen.dim & (chosen.dim - 1):
        parser.error(f"found --dim {chosen.dim}; expected a power of two of at least 16")
    print(f"{chosen.tokens} tokens in {chosen.documents} documents on {device.type}; times in ms")
    print(f"{'window':>7}{'blocks kept':>13}{'dense mask':>12}{'compiled':>10}{'predicted':>11}{'gain':>8}{'error / tolerance':>19}")
    first, failed = None, False
    for window in windows:
        shape = {name: getattr(chosen, name) for name in ("heads", "tokens", "documents", "dim")} | {"window": window}
        dense, sparse = (run_alone(FOLDER / f"{side}_flex_attention.py", shape, device) for side in ("baseline", "optimized"))
        kept, error = share_kept(chosen.tokens, chosen.documents, window), max(dense.error, sparse.error)
        first = first or (kept, sparse.milliseconds)
        predicted, gain = first[1] * kept / first[0], dense.milliseconds / sparse.milliseconds
        figures = f"{dense.milliseconds:>12.3f}{sparse.milliseconds:>10.3f}{predicted:>11.3f}{gain:>7.2f}x{error:>19.2f}"
        print(f"{window:>7}{100 * kept:>12.1f}%{figures}")
        failed |= not error <= 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
