"""Masks and score changes of torch's flex_attention, each checked against dense attention, with the share of blocks that it keeps.

    ./setup.sh python ch18/flex_attention_native.py --tokens 4096 --mask window

A mask says which pairs of a query and a key are seen: blocks without one are skipped. A score change, like a bias by distance, skips none.
"""

import argparse
import statistics
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

KINDS = ("causal", "window", "document", "bias")
SLOPE = 0.05  # what a token of distance takes off a score


def rules(kind, window, document):
    """The mask and the score change of a kind, as flex_attention takes them."""

    def seen(_batch, _head, query, key):
        if kind == "window":
            return (query >= key) & (query - key < window)
        if kind == "document":
            return (query >= key) & (document[query] == document[key])
        return query >= key

    def biased(score, _batch, _head, query, key):
        return score - SLOPE * (query - key)

    return seen, biased if kind == "bias" else None


def dense(q, k, v, seen, biased):
    """The same attention in float64, all pairs of it."""
    at = torch.arange(q.shape[2], device=q.device)
    scores = q.double() @ k.double().mT * q.shape[3] ** -0.5
    if biased:
        scores = biased(scores, None, None, at[:, None], at[None, :])
    return scores.masked_fill(~seen(None, None, at[:, None], at[None, :]), -torch.inf).softmax(-1) @ v.double()


def milliseconds(step, device, calls=5):
    """The median of some calls, after one that compiles."""
    times = []
    for _ in range(calls + 1):
        began = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dim", type=int, default=64, help="elements a head: a power of two, at least 16")
    parser.add_argument("--window", type=int, default=128, help="tokens that a query sees, of --mask window")
    parser.add_argument("--documents", type=int, default=4, help="documents of equal length, of --mask document")
    parser.add_argument("--mask", choices=KINDS, action="append", help="default: all")
    chosen = parser.parse_args()
    if min(chosen.tokens, chosen.heads, chosen.window, chosen.documents) < 1:
        parser.error("found a size below 1; expected --tokens, --heads, --window and --documents of at least 1")
    if chosen.dim < 16 or chosen.dim & (chosen.dim - 1):
        parser.error(f"found --dim {chosen.dim}; expected a power of two of at least 16")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, chosen.heads, chosen.tokens, chosen.dim, dtype=dtype, device=device) for _ in range(3))
    document = torch.arange(chosen.tokens, device=device) * chosen.documents // chosen.tokens
    attend = torch.compile(flex_attention, dynamic=False) if device.type == "cuda" else flex_attention
    print(f"{chosen.tokens} tokens on {device.type}{'' if device.type == 'cuda' else ', not compiled: no block is skipped'}")
    print(f"{'mask':<10}{'blocks kept':>12}{'ms':>10}{'worst error':>13}")
    failed = False
    for kind in chosen.mask or KINDS:
        seen, biased = rules(kind, chosen.window, document)
        blocks = create_block_mask(seen, None, None, chosen.tokens, chosen.tokens, device=device)

        def step(biased=biased, blocks=blocks):
            return attend(q, k, v, score_mod=biased, block_mask=blocks)

        error = (step().double() - dense(q, k, v, seen, biased)).abs().max().item()
        failed |= not error < (0.05 if dtype == torch.bfloat16 else 1e-4)
        print(f"{kind:<10}{100 - blocks.sparsity():>11.1f}%{milliseconds(step, device):>10.3f}{error:>13.1e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
