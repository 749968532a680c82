"""Library: torch.nn.functional.normalize, which reduces in one kernel, clamps the norms in a second and divides in a third."""

from torch.nn.functional import normalize


def prepare(x, eps):
    def step():
        return normalize(x, dim=1, eps=eps)

    return step
