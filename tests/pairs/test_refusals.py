"""Sizes that a kernel's int cannot count, and pointers that its vector accesses cannot use: LAUNCH refuses them before any kernel runs.

Nothing else would tell: an index that wraps around reads and writes elsewhere. No GPU is needed, as a refusal comes before the launch.
"""

import ctypes

import pytest
import torch

from common.python.build.nvcc import architectures_for, build
from common.python.child.sides.cuda import STREAM, read_signatures
from common.python.pairs.directives import read_directives
from common.python.session.session import BUILD_CACHE
from tests.support.cuda_sides import skip_without_tools
from tests.support.teeth import ROOT

INVALID_VALUE, MISALIGNED_ADDRESS = 1, 716
MOST = 2**31 - 1
ALIGNED, ODD = 1 << 20, (1 << 20) + 8  # addresses that nothing touches

TOO_LARGE = [
    ("ch06/optimized_add.cu", {"n": MOST - 1000}),
    ("ch06/optimized_shared_memory.cu", {"n": MOST - 300}),
    *((f"ch08/{side}_launch_bounds.cu", {"rows": 1 << 19}) for side in ("baseline", "optimized")),
    *((f"ch08/{side}_loop_unrolling.cu", {"n": 1 << 28, "count": 1, "dims": 8}) for side in ("baseline", "optimized")),
    *((f"ch08/{side}_occupancy.cu", {"n": MOST - 1000}) for side in ("baseline", "optimized")),
    *((f"ch08/{side}_register_pressure.cu", {"depth": 1, "rows": 1 << 16, "cols": 1 << 15}) for side in ("baseline", "optimized")),
    *((f"ch10/{side}_dsmem_reduction.cu", {"rows": 2**29 + 1, "cols": 1}) for side in ("baseline", "optimized")),
    *((f"ch10/{side}_dsmem_reduction.cu", {"rows": 1, "cols": MOST - 1000}) for side in ("baseline", "optimized")),
    ("ch10/baseline_cluster_group.cu", {"rows": 1, "cols": MOST - 1000}),
    ("ch10/optimized_cluster_group.cu", {"rows": 2**29 + 1, "cols": 1}),
    ("ch10/optimized_matmul.cu", {"m": 1408, "n": 3328, "k": 1 << 22, "clusterDim": 1}),
    *((f"ch12/{side}_batch_atomics.cu", {"n": MOST - 1000}) for side in ("baseline", "optimized")),
    *((f"ch12/{side}_dynamic_parallelism.cu", {"nodes": 1 << 29}) for side in ("baseline", "optimized")),
    ("ch12/optimized_dynamic_parallelism_fixed_grid.cu", {"nodes": 1 << 29}),
    *((f"ch12/{side}_programmatic_dependent_launch.cu", {"layers": 1, "dim": 1028}) for side in ("baseline", "optimized")),
]
OF_VECTORS = [
    ("ch07/baseline_async_prefetch.cu", {"rows": 8, "cols": 64}),
    ("ch07/baseline_l2_streaming.cu", {"tokens": 8}),
    ("ch07/optimized_hbm_copy.cu", {"n": 64}),
    ("ch07/optimized_transpose_vectorized.cu", {"rows": 64, "cols": 64}),
    ("ch07/optimized_vectorized_copy.cu", {"n": 64}),
    ("ch08/optimized_extreme_ilp.cu", {"n": 64}),
    ("ch08/optimized_hbm_vectorized.cu", {"n": 64, "factor": 2.0}),
    ("ch09/optimized_inline_ptx.cu", {"n": 64, "m": 64}),
    ("ch10/baseline_matmul.cu", {"m": 64, "n": 64, "k": 64}),
    ("ch10/baseline_double_buffered_pipeline.cu", {"m": 64, "n": 64, "k": 64}),
    ("ch12/baseline_programmatic_dependent_launch.cu", {"layers": 1, "dim": 64}),
]
_CTYPES = {"int": ctypes.c_int, "float": ctypes.c_float}


def launched(file, shape, address=ALIGNED):
    """What LAUNCH of the side `file` returns for a shape, and for `address` wherever it wants a pointer."""
    skip_without_tools()
    side, directives = ROOT / file, read_directives(ROOT / file)
    needs = (*read_directives(next(side.parent.glob(f"workload_{_pair_of(side)}.py"))).needs, *directives.needs)
    library = ctypes.CDLL(str(build(side, architectures_for(needs, None), flags=directives.nvcc, cache=BUILD_CACHE, root=ROOT).library))
    arguments = read_signatures(side).launch
    pointers = [argument.pointer or argument == STREAM for argument in arguments]
    library.launch.argtypes = [
        ctypes.c_void_p if pointer else _CTYPES[argument.ctype] for argument, pointer in zip(arguments, pointers, strict=True)
    ]
    values = [shape[argument.name] if not pointer else address for argument, pointer in zip(arguments, pointers, strict=True)]
    values[arguments.index(STREAM)] = None
    return library.launch(*values)


def _pair_of(side):
    """The stem of the workload that `side` belongs to: the longest that its own begins with."""
    stem = side.stem.partition("_")[2]
    names = [path.stem.removeprefix("workload_") for path in side.parent.glob("workload_*.py")]
    return max((name for name in names if stem == name or stem.startswith(f"{name}_")), key=len)


@pytest.mark.parametrize(("file", "shape"), TOO_LARGE, ids=str)
def test_a_size_that_an_int_cannot_count_is_refused(file, shape):
    assert launched(file, shape) == INVALID_VALUE


@pytest.mark.parametrize(("file", "shape"), OF_VECTORS, ids=str)
def test_a_pointer_that_a_vector_access_cannot_use_is_refused(file, shape):
    assert launched(file, shape, ODD) == MISALIGNED_ADDRESS


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernel would run, at addresses that nobody allocated")
@pytest.mark.parametrize(("file", "shape"), OF_VECTORS, ids=str)
def test_other_sizes_and_pointers_come_as_far_as_the_launch(file, shape):
    assert launched(file, shape) not in {0, INVALID_VALUE, MISALIGNED_ADDRESS}
