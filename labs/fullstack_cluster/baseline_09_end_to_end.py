"""Baseline: chapter 20's baselines, one stage after the other."""

from shared_chapter20 import job


def prepare(**given):
    return job("baseline", given)
