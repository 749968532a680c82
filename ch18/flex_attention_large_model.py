"""A stack of a large model's attention layers over packed documents: one block mask is built, and every layer uses it.

    ./setup.sh python ch18/flex_attention_large_model.py --layers 8 --tokens 16384

Widths on a GPU are Llama 3 8B's: 4096 elements, 32 query heads and 8 key heads of 128. The same stack runs with a dense mask of
tokens x tokens, and the answers are compared; exit 1 where they differ by more than rounding.
"""

import argparse
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from workload_flex_attention import lengths_of

DIM = {"cuda": 128, "cpu": 16}


def stack(x, layers, heads, kv_heads, attend):
    """x [tokens, hidden] through the layers: norm, projections, attention, residual."""
    for into, out in layers:
        normed = F.rms_norm(x, x.shape[-1:])
        q, k, v = F.linear(normed, into).view(len(x), heads + 2 * kv_heads, -1).transpose(0, 1)[None].split([heads, kv_heads, kv_heads], 1)
        x = x + F.linear(attend(q, k, v)[0].transpose(0, 1).flatten(1), out)
    return x


def timed(step, device):
    """The answer and the ms of a second call, the first one compiled."""
    for _ in range(2):
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        answer = step()
        if device.type == "cuda":
            torch.cuda.synchronize()
    return answer, 1e3 * (time.perf_counter() - began)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=8 if on_gpu else 3)
    parser.add_argument("--tokens", type=int, default=16384 if on_gpu else 512)
    parser.add_argument("--documents", type=int, default=8 if on_gpu else 3)
    parser.add_argument("--heads", type=int, default=32 if on_gpu else 4)
    parser.add_argument("--kv-heads", type=int, default=8 if on_gpu else 2)
    chosen = parser.parse_args()
    if min(chosen.layers, chosen.kv_heads, chosen.documents) < 1 or chosen.tokens < chosen.documents:
        parser.error("found a size below 1, or more documents than tokens; expected sizes of at least 1, and a token a document")
    if chosen.heads < 1 or chosen.heads % chosen.kv_heads:
        parser.error(f"found --heads {chosen.heads}; expected a multiple of --kv-heads, {chosen.kv_heads}")
    torch.manual_seed(0)
    dtype, dim = torch.bfloat16 if on_gpu else torch.float32, DIM[device.type]
    hidden, heads, kv_heads, tokens = chosen.heads * dim, chosen.heads, chosen.kv_heads, chosen.tokens

    def drawn(*shape, std=1.0):
        return (std * torch.randn(*shape, device=device)).to(dtype)

    layers = [(drawn(hidden + 2 * kv_heads * dim, hidden, std=hidden**-0.5), drawn(hidden, hidden, std=hidden**-0.5))]
    layers += [tuple(drawn(*weight.shape, std=hidden**-0.5) for weight in layers[0]) for _ in range(chosen.layers - 1)]
    lengths = lengths_of(tokens, chosen.documents)
    document = torch.cat([torch.full((length,), i, device=device) for i, length in enumerate(lengths)])

    def seen(_batch, _head, query, key):
        return (document[query] == document[key]) & (query >= key)

    at = torch.arange(tokens, device=device)
    blocks = create_block_mask(seen, None, None, tokens, tokens, device=device)
    dense = seen(None, None, at[:, None], at[None, :])
    compiled, x = torch.compile(flex_attention, dynamic=False) if on_gpu else flex_attention, drawn(tokens, hidden)
    kinds = {
        "dense mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=dense, enable_gqa=True),
        "block mask": lambda q, k, v: compiled(q, k, v, block_mask=blocks, enable_gqa=True),
    }
    tables = [part for part in blocks.as_tuple() if isinstance(part, torch.Tensor)]
    bytes_of = {"dense mask": dense.nbytes, "block mask": sum(part.nbytes for part in tables)}
    print(f"{chosen.layers} layers of {hidden} elements, {tokens} tokens on {device.type}; {100 - blocks.sparsity():.1f}% of blocks kept")
    answers = {}
    with torch.no_grad():
        for name, attend in kinds.items():
            answers[name], took = timed(lambda attend=attend: stack(x, layers, heads, kv_heads, attend), device)
            print(f"{name}: {took / chosen.layers:.3f} ms a layer, a mask of {bytes_of[name] / 1024:.1f} KiB")
    one, other = (answer.double() for answer in answers.values())
    error = ((one - other).norm() / other.norm()).item()
    print(f"relative difference of the answers: {error:.1e}")
    return 0 if error < (0.02 if on_gpu else 1e-5) else 1


if __name__ == "__main__":
    sys.exit(main())
