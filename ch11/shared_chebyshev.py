"""Chebyshev polynomials of the four kinds in closed form: what the recurrence of shared_chebyshev.cuh comes to."""

import torch

EDGE = 0.8  # points lie in [-0.8, 0.8): towards 1 the recurrence amplifies rounding errors


def chebyshev(kind, x, degree):
    """The polynomial of `degree` of one kind, 1 to 4, at the points `x`; any shape, float64 for a reference."""
    angle = torch.acos(x)
    return {
        1: lambda: torch.cos(degree * angle),
        2: lambda: torch.sin((degree + 1) * angle) / torch.sin(angle),
        3: lambda: torch.cos((degree + 0.5) * angle) / torch.cos(angle / 2),
        4: lambda: torch.sin((degree + 0.5) * angle) / torch.sin(angle / 2),
    }[kind]()
