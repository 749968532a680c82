"""A new pair is found under the name it was given, is right as it is, and never takes the place of a file."""

import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from common.python.build.nvcc import SUPPORTED, architectures_for, build
from common.python.child.sides.loader import load_side, load_workload
from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.pairs.scaffold import new_pair
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE
from tests.support.teeth import accepts

TEMPLATES = PROJECT_ROOT / "common/python/pairs/templates"


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """What a test imports is forgotten after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def files_of(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def made(root, target, *, cuda=False):
    return [str(path.relative_to(root)) for path in new_pair(discover(root), target, cuda=cuda)]


@pytest.mark.parametrize("target", ["ch07:row_sum", "labs/moe:row_sum", "anything-else:row_sum"])
def test_a_new_pair_is_found_under_its_name(tmp_path, target):
    directory, _, name = target.partition(":")
    assert made(tmp_path, target) == [f"{directory}/{role}_{name}.py" for role in ("workload", "baseline", "optimized")]
    tree = discover(tmp_path)
    assert [pair.target for pair in tree.pairs] == [target]
    assert tree.problems == {}


def test_ch7_is_ch07(tmp_path):
    assert made(tmp_path, "ch7:row_sum")[0] == "ch07/workload_row_sum.py"


def test_a_root_may_itself_be_the_folder(tmp_path):
    (tmp_path / "kernels").mkdir()
    assert made(tmp_path / "kernels", "kernels:row_sum")[0] == "workload_row_sum.py"
    assert [pair.target for pair in discover(tmp_path / "kernels").pairs] == ["kernels:row_sum"]


def test_a_cuda_pair_has_cuda_sides(tmp_path):
    assert made(tmp_path, "ch07:row_sum", cuda=True) == [
        "ch07/workload_row_sum.py",
        "ch07/baseline_row_sum.cu",
        "ch07/optimized_row_sum.cu",
    ]


@pytest.mark.parametrize("taken", ["workload_row_sum.py", "baseline_row_sum.py", "baseline_row_sum.cu", "optimized_row_sum.cu"])
@pytest.mark.parametrize("cuda", [False, True])
def test_a_file_that_is_there_stays_as_it_is(tmp_path, taken, cuda):
    (tmp_path / "ch07").mkdir()
    (tmp_path / "ch07" / taken).write_text("mine")
    with pytest.raises(BenchmarkError, match=rf"^new ch07:row_sum: .*{taken} exists; expected a name that no file has$"):
        made(tmp_path, "ch07:row_sum", cuda=cuda)
    assert files_of(tmp_path) == [f"ch07/{taken}"]
    assert (tmp_path / "ch07" / taken).read_text() == "mine"


ODD = {
    **dict.fromkeys(["row_sum", "ch07:", ":row_sum", ""], "no directory:name; expected for example ch07:row_sum"),
    "ch07:row sum": "' ' in the name 'row sum'; expected letters, digits and _, as in ch07:row_sum",
    "ch07:row-sum": "'-' in the name 'row-sum'; expected letters, digits and _, as in ch07:row_sum",
    "ch07:a:b": "':' in the name 'a:b'; expected letters, digits and _",
    "ch07:x.py": "'.' in the name 'x.py'; expected letters, digits and _",
    "../ch07:x": "'.' in the directory '../ch07'; expected letters, digits, _ and -",
    "ch07/../../x:y": "'.' in the directory 'ch07/../../x'; expected letters, digits, _ and -",
    "-a:x": "'-' in the directory '-a'; expected letters, digits, _ and -, which is not first",
    "/tmp:x": "the directory '/tmp'; expected one folder, or two as in labs/moe:row_sum",
    "a/b/c:x": "the directory 'a/b/c'; expected one folder, or two as in labs/moe:row_sum",
}
NAMES = ("baseline_x", "x_baseline", "optimized_x", "x_optimized", "library_x")
HALVES = {f"ch07:{name}": f"the name '{name}', which is of a side; expected that of the pair" for name in NAMES}


@pytest.mark.parametrize(("target", "told"), (ODD | HALVES).items())
def test_a_name_that_means_something_else_is_refused(tmp_path, target, told):
    with pytest.raises(BenchmarkError, match=f"^new {re.escape(target)}: found {re.escape(told)}"):
        made(tmp_path, target)
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("target", ["tests:x", "common:x", "artifacts/run:x", "labs/__pycache__:x"])
def test_a_folder_that_is_not_looked_into_is_refused(tmp_path, target):
    with pytest.raises(
        BenchmarkError, match=rf"^new {target}: targets are not looked for in .*; expected a chapter's folder, or labs/<name>$"
    ):
        made(tmp_path, target)
    assert files_of(tmp_path) == []


def test_three_levels_are_too_deep(tmp_path):
    with pytest.raises(BenchmarkError, match=r"found the directory 'labs/moe/deep'; expected one folder, or two"):
        made(tmp_path, "labs/moe/deep:x")


# --- what is in the files


@pytest.fixture
def row_sum():
    return load_workload(TEMPLATES / "workload.py")


def test_the_python_sides_are_right_at_every_shape(row_sum, tmp_path):
    from common.python.child.sides.inputs import Inputs

    for file in ("baseline.py", "optimized.py"):
        side = load_side(TEMPLATES / file, row_sum, None)
        for shape in (*row_sum.check_at, row_sum.cpu_at):
            inputs = Inputs(row_sum, shape, 1, torch.device("cpu"), tmp_path)
            step = side.prepare(inputs.values, shape)
            inputs.rewrite(2)
            expected = row_sum.reference(inputs.values["x"].double())
            assert accepts(row_sum.tolerance("baseline"), [step()], [expected]), f"{file} at {shape}"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("file", ["baseline.cu", "optimized.cu"])
def test_the_cuda_sides_build_and_bind(row_sum, file):
    side = TEMPLATES / file
    built = build(side, architectures_for((), SUPPORTED[0]), cache=BUILD_CACHE, root=Path(PROJECT_ROOT))
    assert load_side(side, row_sum, built.library).workspace() == []
