"""Every argument of every CUDA side has something to bind in its workload, at every shape; nothing is built."""

import pytest
import torch

from common.python.cuda_launch import Names, check_source
from common.python.directives import read_directives
from common.python.errors import SideFailure
from common.python.loader import load_workload
from common.python.random_inputs import Inputs
from tests.pairs.planted import BASELINE, planted
from tests.pairs.tree import Side, pairs_of, parameters, sides_of

CPU = torch.device("cpu")
SIDES = [side for side in sides_of(pairs_of()) if side.file.suffix == ".cu"]


def bind(side, folder):
    """Bind the arguments of `side`, their scalars at every shape of the workload. Raises SideFailure."""
    workload = load_workload(side.pair.workload)
    values = Inputs(workload, workload.check_at[0], 1, CPU, folder).values
    others = [] if workload.cpu_at is None else [workload.cpu_at]
    for shape in (*workload.check_at, *workload.timed_shapes.values(), *others):
        names = Names.of(workload, read_directives(side.file), values, shape)
        assert all(scratch.elements(shape) > 0 for scratch in names.scratch)
        check_source(side.file, names)


@pytest.mark.parametrize("side", parameters(SIDES))
def test_arguments_bind(side, tmp_path):
    bind(side, tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "const float* x, float* y, int rows, int cols, cuda",
            "const float* z, float* y, int rows, int cols, cuda",
            r"found argument `const",
        ),
        ("LAUNCH(const float* x, float* y", "LAUNCH(const float* x, int* y", r"found argument `int\* y`"),
        ("LAUNCH(const float* x", "LAUNCH(float* x", r"found argument `float\* x`"),
        ("int rows, int cols, cuda", "float rows, int cols, cuda", r"found argument `float rows`"),
        ("float* y, int rows, int cols, cuda", "int rows, int cols, cuda", r"found no argument for output 'y'"),
    ],
)
def test_an_argument_that_cannot_bind_is_refused(before, after, message, tmp_path):
    assert before in BASELINE
    pair = planted(tmp_path, baseline=BASELINE.replace(before, after))
    with pytest.raises(SideFailure, match=message):
        bind(Side(pair, "baseline"), tmp_path)


def test_a_planted_pair_binds(tmp_path):
    pair = planted(tmp_path)
    for name in pair.sides:
        bind(Side(pair, name), tmp_path)


def test_a_scalar_that_the_timed_shape_does_not_fit_is_refused(tmp_path):
    pair = planted(tmp_path)
    text = pair.workload.read_text()
    pair.workload.write_text(text.replace('"cols": 512', '"cols": 1 << 32'))
    with pytest.raises(SideFailure, match="for cols=4294967296"):
        bind(Side(pair, "baseline"), tmp_path)
