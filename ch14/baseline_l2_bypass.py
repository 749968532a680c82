"""Baseline: no eviction policy: tokens push table rows out of the L2."""

from shared_l2_bypass import adder


def prepare(x, table, ids):
    return adder(x, table, ids, stream="", keep="")
