"""What tests read from a CUDA side: its constants, its library as a run builds it, and its machine code, where there is a compiler."""

import functools
import hashlib
import os
import re
import shutil
import subprocess

import pytest

from common.python.build.cache import keep, kept
from common.python.build.nvcc import architectures_for, build, find_nvcc
from common.python.build.sass import read_code
from common.python.child.sides.inputs import Inputs
from common.python.errors import SideFailure
from common.python.machine.description import find_tool
from common.python.pairs.directives import read_directives
from common.python.session.session import BUILD_CACHE
from tests.pairs.tree import pairs_of, sides_of
from tests.support.teeth import CPU, ROOT


def constants_of(*sources):
    """The `constexpr int`s of sources, in order, so that one may be stated by others."""
    values = {}
    for name, expression in re.findall(r"constexpr int (\w+) = ([^;]+);", "".join(source.read_text() for source in sources)):
        values[name] = eval(expression.replace("/", "//"), {}, values)
    return values


def values_at(workload, shape):
    """The inputs of `workload` at `shape`."""
    return Inputs(workload, shape, 1, CPU, ROOT).values


def skip_without_tools():
    """Skip the test where a side cannot be built and disassembled."""
    try:
        find_nvcc()
    except SideFailure as missing:
        pytest.skip(missing.reason)
    if find_tool("cuobjdump") is None:
        pytest.skip("no cuobjdump")


@functools.cache
def _architectures():
    """For each CUDA side of the tree, what a run builds it for where there is no GPU."""
    found = {}
    for side in sides_of(pairs_of()):
        if side.file.suffix == ".cu":
            needs = (*read_directives(side.pair.workload).needs, *read_directives(side.file).needs)
            found[side.file] = max(found.get(side.file, ()), architectures_for(needs, None), key=len)
    return found


def built(side, architecture="90a", flags=()):
    """The library of a source, as a run builds it if that is for `architecture` too; skips the test where it cannot be built and read."""
    skip_without_tools()
    known = _architectures().get(side, ())
    architectures = known if architecture in known else (architecture,)
    return build(side, architectures, flags=(*read_directives(side).nvcc, *flags), cache=BUILD_CACHE, root=ROOT)


def kernels_of(side, architecture="90a"):
    """The kernels in a source's library, for one architecture."""
    library = built(side, architecture)
    return [kernel for kernel in read_code(library.library, library.log) if kernel.architecture == architecture]


def listing_of(side, architecture="90a"):
    """What cuobjdump prints of a source's library for one architecture, with addresses and control words."""
    library = built(side, architecture).library
    place = library.with_name(f"{library.name}.{architecture}.listing")
    listing = kept(place)
    if listing is None:
        command = [find_tool("cuobjdump"), "-sass", "-arch", f"sm_{architecture}", library]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        keep(place, listing)
    return listing


def compiled(command, program, sources):
    """The program that a shell's `command` makes, from the project's root, of `sources`; {} in it stands for the program's path.

    It lies in the build cache, under a hash of the command, of the sources and of the compiler's version.
    """
    version = subprocess.run([find_nvcc(), "--version"], capture_output=True, text=True, check=True).stdout
    texts = [path.read_text() for path in sorted(sources)]
    key = hashlib.sha256("\0".join([command, version, *texts]).encode()).hexdigest()[:16]
    made = BUILD_CACHE / f"{program}-{key}"
    if not made.exists():
        BUILD_CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = made.with_suffix(f".{os.getpid()}")
        subprocess.run(["bash", "-ec", command.replace("{}", str(unfinished))], cwd=ROOT, check=True, capture_output=True)
        shutil.move(unfinished, made)
    return made
