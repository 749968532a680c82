"""Search for a configuration of ch14:helion on this GPU and print it: `python ch14/tune_helion.py [--effort quick|full] [--size 8192]`.

The winner is written into optimized_helion.py, with the GPU it was found on: a run does not search.
"""

import argparse
import importlib.util
import os
import sys

import torch


def options_of(arguments):
    """The command line's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=("quick", "full"), default="full", help="how long Helion searches (default: full)")
    parser.add_argument("--size", type=int, default=8192, help="m, n and k of the product (default: 8192)")
    options = parser.parse_args(arguments)
    if options.size < 8 or options.size % 8:
        parser.error(f"--size: found {options.size}; expected a multiple of 8, since the TMA takes rows of whole 16 bytes")
    return options


def missing():
    """What the search needs and this machine lacks, in one sentence; empty if nothing."""
    if importlib.util.find_spec("helion") is None:
        return "the Python package helion is not installed; expected helion 1.0.0 (pip install helion==1.0.0)"
    return "" if torch.cuda.is_available() else "no CUDA device; expected one, since configurations are timed"


def operands(size):
    """The inputs of the pair's distribution, and room for the answer."""
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    b = (torch.randn(size, size, device="cuda") * size**-0.5).to(torch.bfloat16)
    return a, b, torch.empty_like(a)


def main(arguments=None):
    """Search, then time the winner beside the committed configuration and cuBLAS."""
    options = options_of(arguments)
    if reason := missing():
        sys.exit(f"tune_helion.py: {reason}")
    os.environ["HELION_AUTOTUNE_EFFORT"] = options.effort  # before Helion is imported
    import optimized_helion as committed
    import triton

    inputs = operands(options.size)
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}; searching, {options.effort}", flush=True
    )
    found = committed.matmul.bind(inputs).autotune(inputs, force=True)
    # A fresh binding has the committed configuration; the one that searched has the winner.
    multiply = committed.helion.kernel(committed.matmul.fn, config=found).bind(inputs)
    usual = committed.helion.kernel(committed.matmul.fn, config=committed.CONFIGURATION).bind(inputs)
    a, b, c = inputs
    steps = {"found": lambda: multiply(*inputs), "committed": lambda: usual(*inputs), "torch.mm": lambda: torch.mm(a, b.T, out=c)}
    for name, step in steps.items():
        print(f"{triton.testing.do_bench(step, return_mode='median') * 1e3:8.1f} us  {name}")
    print(found)


if __name__ == "__main__":
    main()
