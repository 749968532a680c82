"""Whether what was drawn is distributed as it should be."""

import torch
from scipy import stats


def fits(counts, shares):
    """The p value of a chi-square test of counts against shares, those expected less than five times taken as one.

    0 where something of no share was seen.
    """
    seen, shares = counts.flatten().double(), shares.flatten().double()
    if bool(seen[shares == 0].any()):
        return 0.0
    expected = shares / shares.sum() * seen.sum()
    rare = expected < 5
    both = [torch.cat((each[~rare], each[rare].sum()[None])) if expected[rare].sum() >= 5 else each[~rare] for each in (seen, expected)]
    return stats.chisquare(both[0], both[1] * both[0].sum() / both[1].sum()).pvalue
