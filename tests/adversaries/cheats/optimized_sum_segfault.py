"""Cheat: reads address 0."""

import ctypes


def prepare(x):
    def step():
        ctypes.string_at(0)

    return step
