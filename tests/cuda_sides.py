"""What tests read from a CUDA side: its constants, the arguments that bind, and its library, where there is a compiler."""

import re

import pytest

from common.python.bench import BUILD_CACHE
from common.python.cuda_build import build, find_nvcc
from common.python.cuda_launch import Names, check_source
from common.python.directives import read_directives
from common.python.environment import find_tool
from common.python.errors import SideFailure
from common.python.random_inputs import Inputs
from tests.teeth import CPU, ROOT


def constants_of(*sources):
    """The `constexpr int`s of sources, in order, so that one may be stated by others."""
    values = {}
    for name, expression in re.findall(r"constexpr int (\w+) = ([^;]+);", "".join(source.read_text() for source in sources)):
        values[name] = eval(expression.replace("/", "//"), {}, values)
    return values


def values_at(workload, shape):
    """The inputs of `workload` at `shape`."""
    return Inputs(workload, shape, 1, CPU, ROOT).values


def arguments_of(workload, side):
    """The names of LAUNCH's arguments, once each is known to have something to bind."""
    shape = workload.check_at[0]
    names = Names.of(workload, read_directives(side), values_at(workload, shape), shape)
    return [argument.name for argument in check_source(side, names).launch]


def skip_without_tools():
    """Skip the test where a side cannot be built and disassembled."""
    try:
        find_nvcc()
    except SideFailure as missing:
        pytest.skip(missing.reason)
    if find_tool("cuobjdump") is None:
        pytest.skip("no cuobjdump")


def built(side, _folder=None, architecture="90a"):
    """The side's library, built into the harness's cache; skips the test where it cannot be built and disassembled."""
    skip_without_tools()
    return build(side, [architecture], cache=BUILD_CACHE, root=ROOT)
