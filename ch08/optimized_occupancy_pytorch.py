"""Optimized: a row is cut into parts of up to 4096 entries, each a row to softmax: thousands of blocks, and then a factor a part."""
# expects: 6x, 4 SMs at 64 bytes a cycle do 4 passes over 268 MB in 2.4 ms; at 4.3 TB/s 6 passes take 0.4 ms
# proves: grid > 100 x baseline

import math

WIDTH = 4096


def prepare(x, rows, cols):
    width = math.gcd(cols, WIDTH)

    def step():
        parts = x.view(-1, width)
        y = parts.softmax(dim=1)
        # The largest entry m of a part became exp(m - l), where l is the logarithm of the part's sum of exponentials.
        logs = parts.amax(dim=1) - y.amax(dim=1).log()
        y *= logs.view(rows, -1).softmax(dim=1).view(-1, 1)
        return y.view(rows, cols)

    return step
