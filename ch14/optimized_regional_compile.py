"""Optimized: blocks compile one by one and share a single graph."""
# predicts: baseline 20 s = 4 + 4 + 1.5 * layers  (import the compiler, compile the kernels, trace and lower each layer: assumed)
# predicts: optimized 9.5 s = 4 + 4 + 1.5  (one layer traced and lowered)

from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = Decoder(weights, heads, tokens)
    for block in decoder.blocks:
        block.compile(fullgraph=True, dynamic=False)  # torch.compile of the module itself
    return lambda: decoder(x)
