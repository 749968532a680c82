"""Counts of codes and scales of a format as shares of values: by value or by power of two, and as a table."""

import math
from collections import Counter

E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
HEAD = ("format", "values", "codes used", "zeros", "beyond the largest code", "scales used", "rounding error")


def e4m3_size(code):
    """The magnitude of a code of e4m3 that is a number."""
    exponent, mantissa = code >> 3 & 15, code & 7
    return math.ldexp(8 + mantissa, exponent - 10) if exponent else math.ldexp(mantissa, -9)


def is_four_bits(found):
    return len(found["codes"]) == 16


def codes_that_are_numbers(found):
    """All 16 of e2m1; of e4m3 all but two NaNs."""
    return [code for code in range(len(found["codes"])) if is_four_bits(found) or code & 127 != 127]


def by_power(size):
    """A bin of numbers of one power of two: where it stands and its name. Zero is the first."""
    return (math.floor(math.log2(size)), f"2^{math.floor(math.log2(size))}") if size else (-math.inf, "0")


def bin_of_code(found, code):
    if not is_four_bits(found):
        return by_power(e4m3_size(code))
    value = -E2M1[code & 7] if code & 8 else E2M1[code]
    return value, f"{value:g}"  # both zeros are one value


def bin_of_scale(found, byte):
    power = by_power(e4m3_size(byte))[0] if is_four_bits(found) else byte - 127
    return power, f"2^{power}"


def shares(found, of):
    """By bin the share of all `codes` or all `scales`."""
    bin_of, total = {"codes": bin_of_code, "scales": bin_of_scale}[of], sum(found[of])
    bins = Counter()
    for index, count in enumerate(found[of]):
        if count:
            bins[bin_of(found, index)] += count / total
    return bins


def lines_of(counts):
    """The cells behind HEAD of each format and kind of values."""
    for name, kinds in counts.items():
        for kind, found in kinds.items():
            known = codes_that_are_numbers(found)
            zeros, beyond, error = shares(found, "codes")[bin_of_code(found, 0)], found["beyond"], found["error"]
            used = f"{sum(found['codes'][code] > 0 for code in known)} of {len(known)}"
            scales = f"{sum(count > 0 for count in found['scales'])}"
            yield name, kind, used, f"{100 * zeros:.2f} %", f"{100 * beyond:.2f} %", scales, f"{100 * error:.2f} %"
