"""Sides that differ in words alone are the same code; a changed letter of code is not."""

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.sources import same_code, with_imports

PYTHON = '"""Baseline: plain."""\n\n\ndef prepare(x):\n    """Set up."""\n    return lambda: x + 1  # once\n'
CUDA = '// Baseline: plain.\nLAUNCH(const float* x) { /* a\n block */ return go("// kept"); }\n'


def files(tmp_path, suffix, first, second):
    paths = tmp_path / f"baseline_a{suffix}", tmp_path / f"optimized_a{suffix}"
    for path, text in zip(paths, (first, second), strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize(
    ("suffix", "first", "second", "same"),
    [
        (".py", PYTHON, PYTHON.replace("Baseline: plain", "Optimized").replace("  # once", ""), True),
        (".py", PYTHON, PYTHON.replace("x + 1", "x + 2"), False),
        (".py", PYTHON, PYTHON.replace("return lambda", "x = x\n    return lambda"), False),
        (".cu", CUDA, CUDA.replace("Baseline", "Optimized").replace("a\n block", "").replace(" { ", "\n{\n    "), True),
        (".cu", CUDA, CUDA.replace("// kept", "// other"), False),
    ],
)
def test_words_and_layout_make_no_difference_and_code_does(tmp_path, suffix, first, second, same):
    assert same_code(*files(tmp_path, suffix, first, second)) is same


def test_a_python_side_and_a_cuda_side_are_never_the_same(tmp_path):
    (tmp_path / "a.py").write_text("")
    (tmp_path / "a.cu").write_text("")

    assert not same_code(tmp_path / "a.py", tmp_path / "a.cu")


def test_the_same_text_with_something_shared_elsewhere_need_not_be_the_same_code(tmp_path):
    text = "from shared_tiles import tile\n"
    for folder in ("now", "then"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "optimized_a.py").write_text(text)

    assert not same_code(tmp_path / "now" / "optimized_a.py", tmp_path / "then" / "optimized_a.py")
    assert same_code(tmp_path / "now" / "optimized_a.py", tmp_path / "now" / "optimized_a.py")


def test_a_side_comes_with_the_files_beside_it_that_it_imports_and_that_these_import(tmp_path):
    texts = {
        "side.py": "from shared_a import step\nimport torch\n",
        "shared_a.py": "import shared_b\nfrom side import prepare\n",
        "shared_b.py": "import triton\n",
        "other.py": "import triton\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [path.name for path in with_imports(tmp_path / "side.py")] == ["side.py", "shared_a.py", "shared_b.py"]


def test_a_side_comes_with_what_it_imports_of_its_projects_packages(tmp_path):
    texts = {
        "bench/side.py": "from package.kernels.rows import tri\nfrom elsewhere import missing\n",
        "package/__init__.py": "",
        "package/kernels/__init__.py": "from ..shared import scale\n",
        "package/kernels/rows.py": "from . import tiles\n",
        "package/kernels/tiles.py": "",
        "package/shared.py": "",
        "package/other.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {path.resolve().relative_to(tmp_path).as_posix() for path in with_imports(tmp_path / "bench/side.py", [tmp_path])}
    assert found == texts.keys() - {"package/other.py"}
    assert [path.name for path in with_imports(tmp_path / "bench/side.py")] == ["side.py"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\nx = (1\n", ":2: '(' was never closed; expected Python"),
        ("x = '\0'\n", "source code string cannot contain null bytes; expected Python"),
        (f"x = {'-' * 100_000}1\n", "; expected Python"),
    ],
)
def test_a_file_that_is_no_python_is_named_with_its_line(tmp_path, text, sentence):
    side, other = tmp_path / "optimized_a.py", tmp_path / "shared_b.py"
    side.write_text("import shared_b\n")
    other.write_text(text)
    with pytest.raises(BenchmarkError) as caught:
        with_imports(side)
    assert str(caught.value).startswith(str(other))
    assert str(caught.value).endswith(sentence)
    with pytest.raises(BenchmarkError, match="expected Python"):
        same_code(other, other)
