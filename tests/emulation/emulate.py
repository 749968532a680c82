"""A CUDA side on the CPU: `check_side` compares what a plain .cu computes with its workload's reference, and needs no GPU.

How to use it. `check_side(Path("ch07/workload_transpose.py"), Path("ch07/optimized_transpose.cu"))` builds the side with g++ against an
emulated CUDA (`cuda_on_cpu.hpp` is the language, the `.cpp` files are the machine), binds it with the project's own
`CudaSide` on CPU tensors, and runs every `check_at` shape on two seeds, outputs and scratch poisoned, live inputs rewritten after
`prepare`, the threads of a block taking their turns forward, backward and shuffled. It raises AssertionError with one sentence for: a
mismatch with the reference; an access outside an array, or a write to one that is const; a race on shared memory; a barrier that not all
threads reach; what the language leaves undefined (a misaligned vector, an index out of bounds, an overflow); an input that changed; an
output that depends on the order of threads though nothing is atomic. What it cannot emulate (inline PTX, TMA, tensor cores, clusters,
libcu++ but for its pipelines) it names in NotEmulated. By hand, `python -m tests.emulation.emulate ch07/optimized_transpose.cu` checks a
side, and `--show` prints what is compiled. A shape of more than 2^20 elements is not run but noted, and a launch of more than 2^27
accesses fails: keep `check_at` small, for a second a side.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import hashlib
import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.compare import changed, compare, poison, same_bits, snapshot, take_outputs, upcast
from common.python.child.sides.cuda import CudaSide, Names, label_of
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import Step, load_workload
from common.python.errors import SideFailure
from common.python.machine.description import cache_folder
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover, with_rungs
from common.python.pairs.workload import Shape, Workload, call_by_name
from common.python.project import PROJECT_ROOT
from common.python.run.emulating import NOT_EMULATED
from common.python.wording import one_line
from tests.emulation.translate import NotEmulated, translate

CACHE = cache_folder() / "build"
MOST_ELEMENTS = 1 << 20  # of all inputs and outputs at a shape: a second or so

_HERE = Path(__file__).parent
_CPU = torch.device("cpu")
_ORDERS = {"forward": 0, "backward": 1, "shuffled": 2}

# -fsanitize makes g++ call a hook at every access; memory.cpp has the hooks, so the sanitizers' own runtimes are not linked.
_MACHINE_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-U_FORTIFY_SOURCE", "-fvisibility=hidden")
_SIDE_FLAGS = (
    *("-std=c++17", "-O1", "-g", "-fPIC", "-w", "-ffp-contract=off", "-fno-gnu-unique", "-fsanitize=thread"),
    "-fsanitize=alignment,null,bounds,shift-exponent,signed-integer-overflow,integer-divide-by-zero,return",
    *("--param", "tsan-instrument-func-entry-exit=0"),
)
_PLACE_FLAGS = (f"-ffile-prefix-map={PROJECT_ROOT}=.",)  # no part of the key: the same library in every checkout
_LINK_FLAGS = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")

_ERROR = re.compile(r"^.*\b(?:error|undefined reference)\b.*$", re.MULTILINE)
_MISSING = re.compile(r"^(.*?):\d+:\d+: error: '((?:cuda|cu[A-Z]|__)\w+)' (?:was not|has not been|does not name)")
_ADDRESS = re.compile(r"<code (0x[0-9a-f]+)>")


def check_side(workload_path: Path, side_path: Path, shapes: Sequence[Shape] | None = None, *, cache: Path = CACHE) -> list[str]:
    """Check the .cu at `side_path` at `shapes`, or at the workload's `check_at`; returns a note for every shape that is too large.

    Raises AssertionError with the first thing that is wrong, and NotEmulated.
    """
    workload = load_workload(workload_path)
    library = build(side_path, cache=cache)
    notes = []
    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on vectors this short, several threads do little but wait for each other
    try:
        side = EmulatedSide(side_path, library, workload)
        for shape in workload.check_at if shapes is None else shapes:
            notes += _check_shape(side, workload, shape)
    except SideFailure as failure:
        raise AssertionError(_with_lines(failure.reason, library)) from failure
    finally:
        torch.set_num_threads(torch_threads)
    return notes


def _check_shape(side: EmulatedSide, workload: Workload, shape: Shape) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 1, _CPU, Path(folder))
        elements = sum(tensor.numel() for _, tensor in inputs.tensors()) + sum(spec.elements for spec in workload.outputs(**shape).values())
        if elements > MOST_ELEMENTS:
            return [f"{side.file} at {dict(shape)}: {elements} elements are too many to emulate"]
        step = side.prepare(inputs.values, shape, stream=lambda: 0)
        side.finish_call("PREPARE")
        answers = side.checked_calls(step, inputs, shape, 2, tuple(_ORDERS))
        side.checked_calls(step, inputs, shape, 3, ("forward",))
        for (order, answer), name in itertools.product(answers.items(), workload.outputs(**shape)):
            same = side.uses_atomics or same_bits(answer[name], answers["forward"][name])
            assert same, f"{side.file} at {dict(shape)}: output {name} depends on whether threads run forward or {order}"
        side.close()
    return []


class EmulatedSide(CudaSide):
    """A side whose library was built by `build`: the emulation knows every array that is bound, and where it ends."""

    def __init__(self, source: Path, library: Path, workload: Workload) -> None:
        """Load `library`, built from `source`."""
        super().__init__(source, library, workload, read_directives(source))
        self.file = label_of(source)
        self.uses_atomics = False
        self._role = source.name.split("_")[0]
        self._built = library
        self._emulation = ctypes.CDLL(str(library))
        self._emulation.emulation_allow.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool]
        self._emulation.emulation_error.restype = ctypes.c_char_p
        self._emulation.emulation_atomics.restype = ctypes.c_uint64

    def _allocate(self, names: Names) -> None:
        super()._allocate(names)
        for name, tensor in self._bound.items():
            self._emulation.emulation_allow(name.encode(), tensor.data_ptr(), tensor.numel() * tensor.itemsize, name in names.writable)
        for tensor in self.workspace():
            poison(tensor)
        self._emulation.emulation_begin(_ORDERS["forward"])

    def close(self) -> None:
        """Run FINISH, if a PREPARE has to be undone, and let the emulation forget the arrays."""
        super().close()
        self._emulation.emulation_forget()

    def finish_call(self, where: str) -> None:
        """Raises AssertionError with what the emulation found and the side did not return."""
        if found := self._emulation.emulation_error().decode():
            raise AssertionError(_with_lines(f"{self.file}: {where}: {found}", self._built))

    def checked_calls(
        self, step: Step, inputs: Inputs, shape: Shape, seed: int, orders: Sequence[str]
    ) -> dict[str, dict[str, torch.Tensor]]:
        """The outputs of a call on the inputs of `seed` for each order of threads, all within the tolerance of the reference."""
        inputs.rewrite(seed)
        expected = _reference(self._workload, shape, inputs.values)
        answers, specs = {}, inputs.answers()
        for order in orders:
            inputs.rewrite(seed)
            answers[order] = self._call_once(step, inputs, shape, order)
            for name, tensor in answers[order].items():
                mismatch = compare(name, tensor, expected[name], self._workload.tolerance(self._role, specs[name]))[1]
                assert not mismatch, f"{self.file} at {dict(shape)}, threads {order}: {mismatch}"
        return answers

    def _call_once(self, step: Step, inputs: Inputs, shape: Shape, order: str) -> dict[str, torch.Tensor]:
        in_place = {name: tensor for name, tensor in inputs.tensors() if name in self._workload.in_place}
        before = snapshot({name: tensor for name, tensor in inputs.tensors() if name not in in_place})
        for tensor in self.workspace():
            poison(tensor)
        self._emulation.emulation_begin(_ORDERS[order])
        returned = step()
        self.finish_call(f"at {dict(shape)}")
        self.uses_atomics |= bool(self._emulation.emulation_atomics())
        taken = take_outputs(returned, self._workload.outputs(**shape), in_place, self.file)
        modified = changed(before, inputs.tensors())
        assert not modified, f"{self.file} at {dict(shape)}: changed its inputs {', '.join(modified)}"
        return snapshot(taken)


def _reference(workload: Workload, shape: Shape, values: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    precise = upcast(values, torch.float64 if workload.reference_in == "float64" else torch.float32)
    returned = call_by_name(workload.reference, {**shape, **precise}, "reference")
    tensors = (returned,) if isinstance(returned, torch.Tensor) else tuple(returned)
    # A reference may return an input as it is, and the side may change it.
    return {name: tensor.clone() for name, tensor in zip(workload.outputs(**shape), tensors, strict=True)}


def build(source: Path, *, cache: Path = CACHE) -> Path:
    """The emulated library of the .cu at `source`, made by g++ or found in `cache`.

    Raises NotEmulated, and AssertionError with the first error of g++.
    """
    text = translate(source)
    flags = [*_SIDE_FLAGS, *_initialised(), *(flag for flag in read_directives(source).nvcc if flag.startswith(("-D", "-std")))]
    machine = _machine(cache)
    key = hashlib.sha256("\0".join([text, *flags, *_LINK_FLAGS, machine.name]).encode()).hexdigest()[:16]
    library = cache / f"emulated_{source.stem}-{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as folder:
            written, made, built = Path(folder, "side.cpp"), Path(folder, "side.o"), Path(folder, library.name)
            written.write_text(text)
            _run(["g++", *flags, *_PLACE_FLAGS, f"-I{_HERE}", "-include", "cuda_on_cpu.hpp", "-c", str(written), "-o", str(made)], source)
            _run(["g++", *_LINK_FLAGS, str(made), str(machine), "-o", str(built)], source)
            built.replace(library)
    return library


@functools.cache
def _initialised() -> tuple[str, ...]:
    """g++ 12 and later can fill variables that a side forgot to initialise, so that they are wrong every time."""
    major = int(_run(["g++", "-dumpversion"], _HERE).split(".")[0])
    return ("-ftrivial-auto-var-init=pattern",) if major >= 12 else ()


@functools.cache
def _machine(cache: Path) -> Path:
    """The compiled machine, under a name that stands for all of the emulation."""
    version = _run(["g++", "--version"], _HERE)
    texts = [path.read_text() for path in sorted(_HERE.glob("*.[ch]pp"))]
    key = hashlib.sha256("\0".join([*texts, *_MACHINE_FLAGS, version]).encode()).hexdigest()[:16]
    made = cache / f"emulation-{key}.o"
    if not made.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as folder:
            built = Path(folder, made.name)
            sources = map(str, sorted(_HERE.glob("*.cpp")))
            _run(["g++", *_MACHINE_FLAGS, "-r", *sources, "-o", str(built)], _HERE)
            built.replace(made)
    return made


def _with_lines(reason: str, library: Path) -> str:
    """`reason` with file and line for every place that the emulation knows only by its address in `library`."""

    def line(found: re.Match[str]) -> str:
        places = [Path(place).as_posix() for place in _run(["addr2line", "-i", "-e", str(library), found[1]], library).splitlines()]
        ours = next((place for place in places if not place.startswith("tests/emulation/")), places[0])
        return ours.split()[0]  # a discriminator may follow

    return _ADDRESS.sub(line, reason)


def _run(command: list[str], source: Path) -> str:
    result = subprocess.run(["env", "LC_ALL=C", *command], capture_output=True, text=True, check=False, cwd=PROJECT_ROOT)
    errors = _ERROR.findall(result.stderr)
    if missing := _MISSING.search(errors[0] if errors else ""):
        raise NotEmulated(f"{missing[1]}: uses {missing[2]}, which is not emulated")
    assert not result.returncode, f"{source.name}: cannot be emulated: {errors[0] if errors else result.stderr}"
    return result.stdout


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", type=Path)
    parser.add_argument("--workload", type=Path, help="of a side outside of this project; default: that of the pair that has the side")
    parser.add_argument("--show", action="store_true", help="print the C++ that is compiled, and stop")
    arguments = parser.parse_args()
    side = arguments.side.resolve()
    if arguments.show:
        print(translate(side))
        return 0
    if arguments.workload:
        return _checked(arguments.workload.resolve(), side)
    pairs = [pair for pair in discover(PROJECT_ROOT).pairs if side in with_rungs(pair, PROJECT_ROOT).sides.values()]
    if not pairs:
        print(f"{arguments.side}: found no pair with it; expected a side of one")
        return 1
    return _checked(pairs[0].workload, side)


def _checked(workload: Path, side: Path) -> int:
    """Print what is found of a side, in one line; 1 for a wrong one, NOT_EMULATED for one that cannot be run."""
    try:
        notes = check_side(workload, side)
    except NotEmulated as failure:
        print(one_line(str(failure)))
        return NOT_EMULATED
    except AssertionError as failure:
        print(one_line(str(failure)))
        return NOT_EMULATED if ": cannot be emulated: " in str(failure) else 1
    if notes and len(notes) == len(load_workload(workload).check_at):
        print(notes[0])
        return NOT_EMULATED
    print(*notes, f"{label_of(side)}: right", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
