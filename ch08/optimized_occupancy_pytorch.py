"""Optimized: rows cut into parts of 4096: thousands of blocks."""
# predicts: baseline 2.4 ms on h200  (4 passes over 268 MB by 4 SMs at 64 bytes per cycle)
# predicts: optimized 0.4 ms on h200  (6 passes over 268 MB at 4.3 TB/s)
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
