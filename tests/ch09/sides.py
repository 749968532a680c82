"""What the tests of chapter 9 read from a side: its text, its constants, the arguments that bind, and its machine code."""

import re
import subprocess

import pytest

from common.python.cuda_build import build, find_nvcc
from common.python.cuda_launch import Names, check_source
from common.python.directives import read_directives
from common.python.environment import find_tool
from common.python.errors import SideFailure
from common.python.random_inputs import Inputs
from tests.teeth import CPU, ROOT

CHAPTER = ROOT / "ch09"


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    """The `constexpr int`s of a source, in order, so that one may be stated by others."""
    values = {}
    for name, expression in re.findall(r"constexpr int (\w+) = ([^;]+);", text_of(side)):
        values[name] = eval(expression.replace("/", "//"), {}, values)
    return values


def values_at(workload, shape):
    return Inputs(workload, shape, 1, CPU, ROOT).values


def arguments(workload, side):
    """The names of LAUNCH's arguments, once each is known to have something to bind."""
    shape = workload.check_at[0]
    names = Names.of(workload, read_directives(CHAPTER / side), values_at(workload, shape), shape)
    return [argument.name for argument in check_source(CHAPTER / side, names).launch]


def code_of(side, folder, architecture="90a"):
    """The instructions of a side's kernels, one a line."""
    try:
        find_nvcc()
    except SideFailure as missing:
        pytest.skip(missing.reason)
    if find_tool("cuobjdump") is None:
        pytest.skip("no cuobjdump")
    library = build(CHAPTER / side, [architecture], cache=folder, root=ROOT).library
    listing = subprocess.run([find_tool("cuobjdump"), "-sass", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing)
