"""What torch.compile made of a function, asked in three ways: its graphs, its recompilations and its kernels.

./setup.sh python ch14/torch_compiler_examples.py

Runs on a GPU or a CPU. Each example says what it found, and fails where that is not what its comment says.
"""

import torch
from torch._dynamo.testing import CompileCounter
from torch._inductor.utils import run_and_get_code
from torch.nn.functional import silu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def require(found, expected, what):
    """Print a finding. Raises SystemExit if it is not what was expected."""
    print(f"{what}: {found}")
    if found != expected:
        raise SystemExit(f"{what}: found {found}; expected {expected}")


def graphs():
    """A branch on a value ends one graph and begins another; torch.where keeps both ways in one."""

    def branch(x):
        y = x + 1
        return y * 2 if y.sum().item() > 0 else y * 3

    def where(x):
        y = x + 1
        return torch.where(y.sum() > 0, y * 2, y * 3)

    for function, expected in ((branch, 2), (where, 1)):
        found = torch._dynamo.explain(function)(torch.ones(8, device=DEVICE))
        require(found.graph_count, expected, f"graphs with {function.__name__}")


def recompilations():
    """Each length costs a graph with dynamic=False, the first two without, and the first alone where it is marked."""
    for dynamic, is_marked, expected in ((False, False, 4), (None, False, 2), (None, True, 1)):
        torch._dynamo.reset()
        counter = CompileCounter()  # a backend that counts graphs and runs them eagerly
        compiled = torch.compile(silu, backend=counter, dynamic=dynamic)
        for length in (16, 24, 40, 56):
            x = torch.ones(length, 8, device=DEVICE)
            if is_marked:
                torch._dynamo.mark_dynamic(x, 0)
            compiled(x)
        require(counter.frame_count, expected, f"graphs of 4 lengths, dynamic={dynamic}, {'marked' if is_marked else 'unmarked'}")


def kernels():
    """Three operators of a row become one kernel, which the generated code names after them."""
    x = torch.randn(64, 256, device=DEVICE)
    found, (code,) = run_and_get_code(torch.compile(lambda x: silu(x + 1) * x), x)
    torch.testing.assert_close(found, silu(x + 1) * x)
    require(code.count("_fused_add_mul_silu_0 = "), 1, "kernels of add, silu and mul")


if __name__ == "__main__":
    graphs()
    recompilations()
    kernels()
