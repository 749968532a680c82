"""ch14:helion where Helion is installed: what its configuration becomes in machine code, and right sums in Triton's interpreter."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.build.cache import keep_by_content
from common.python.build.sass import read_code
from common.python.session.session import BUILD_CACHE
from tests.pairs.harness import Harness
from tests.pairs.tree import Side, pairs_of
from tests.support.teeth import ROOT

needs_helion = pytest.mark.skipif(importlib.util.find_spec("helion") is None, reason="needs the Python package helion")

# Helion asks for a GPU's SMs, which a CPU does not have; without a GPU it loads by pointers.
INTERPRETED = """
import torch
import helion.runtime
from common.python.child.sides.triton import mend_interpreter
mend_interpreter()
helion.runtime.get_num_sm = lambda *_args, **_options: 2
from optimized_helion import prepare
for m, n, k in ((1, 8, 8), (129, 264, 72)):
    a, b = torch.randn(m, k).bfloat16(), (torch.randn(n, k) * k**-0.5).bfloat16()
    torch.testing.assert_close(prepare(a, b)().double(), a.double() @ b.double().T, rtol=2**-7, atol=2e-3)
print("right")
"""


@needs_helion
@pytest.mark.slow
def test_the_configuration_becomes_descriptors_and_a_program_an_sm():
    (pair,) = [pair for pair in pairs_of() if pair.target == "ch14:helion"]
    with Harness() as harness:
        observed = harness.compile(Side(pair, "optimized"), {"m": 4096, "n": 4096, "k": 4096}, (9, 0))
        (kernel,) = [kernel for cubin in observed.cubins for kernel in read_code(keep_by_content(Path(cubin), BUILD_CACHE))]
    (launch,) = observed.launches
    counts = {mark: sum(mark in text for text in kernel.instructions) for mark in ("UTMALDG", "UTMASTG", "HGMMA", "LDGSTS", "STL")}
    assert launch.grid == (132, 1, 1)
    assert (counts["LDGSTS"], counts["STL"]) == (0, 0)
    assert counts["UTMALDG"] >= 2
    assert counts["UTMASTG"] >= 1
    assert counts["HGMMA"] >= 1


@needs_helion
@pytest.mark.slow
def test_the_sums_are_right():
    command = [sys.executable, "-c", INTERPRETED]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=ROOT / "ch14", env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr[-2000:]
