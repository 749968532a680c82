"""`verify --emulate`: a CUDA side is checked without a GPU; what is wrong is told, and what cannot be emulated stays SKIPPED."""

import shutil

import pytest

from common.python.report.run_folder import load
from common.python.run import emulating
from tests.support.commands import benchmark_here

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
SUM = "for (int c = lane; c < cols; c += LANES) sum += x[size_t(row) * cols + c];"


@pytest.fixture
def here(tmp_path):
    return lambda *arguments: benchmark_here(*arguments, scratch=tmp_path)


@pytest.fixture
def verified(here, tmp_path):
    """`verify --emulate` of a new pair in CUDA C++, whose optimized side was changed: how it ended, and the row."""
    (tmp_path / "root").mkdir()
    assert here("new", "ch01:row_sum", "--cuda", "--root", tmp_path / "root").code == 0

    def verify(old="", new="", *flags):
        side = tmp_path / "root/ch01/optimized_row_sum.cu"
        side.write_text(side.read_text().replace(old, new) if old else side.read_text())
        arguments = flags or ("--emulate",)
        finished = here("verify", *arguments, "--device", "cpu", "--root", tmp_path / "root", "--artifacts-dir", tmp_path / "run")
        (row,) = load(tmp_path / "run")[1]
        return finished, row

    return verify


@needs_gcc
def test_a_right_pair_passes_and_says_what_was_checked(verified):
    finished, row = verified()

    assert (finished.code, row.status, row.timings) == (0, "PASSED", {}), finished
    assert emulating.CHECKED in row.notes
    assert f"ch01:row_sum: {emulating.CHECKED}" in finished.stdout


@needs_gcc
@pytest.mark.parametrize(
    ("new", "found"),
    [
        (SUM.replace("c += LANES", "c += 2 * LANES"), "row_sum"),
        (SUM.replace("c < cols", "c <= cols * rows"), "x"),
    ],
    ids=["a wrong sum", "beyond the array"],
)
def test_a_wrong_side_is_wrong_with_the_command_that_repeats_it(verified, new, found):
    finished, row = verified(SUM, new)

    assert (finished.code, row.status) == (4, "WRONG_RESULT"), finished
    assert row.reason.startswith("emulated: ")
    assert found in row.reason
    assert row.reason.count("; repeat: benchmark_cli verify --targets ch01:row_sum --seed ") == 1
    assert row.reason.endswith(" --device cpu --emulate")


@needs_gcc
def test_what_is_not_emulated_is_skipped_by_name(verified):
    finished, row = verified("float sum = 0.0f;", 'float sum = 0.0f;\n    asm volatile("membar.gl;");')

    assert row.status == "SKIPPED", finished
    assert row.reason.startswith("no CUDA device; --emulate: ")
    assert "optimized_row_sum.cu" in row.reason


def test_without_the_flag_such_a_pair_is_skipped(verified):
    finished, row = verified("", "", "--seed", "1")

    assert (row.status, row.reason) == ("SKIPPED", "no CUDA device")
    assert "emulation" not in finished.stdout


def test_without_a_compiler_it_says_so(verified, monkeypatch):
    monkeypatch.setattr(emulating.shutil, "which", lambda name: None)

    assert verified()[1].reason == "no CUDA device; --emulate: found no g++, which compiles what is emulated"


def test_an_installed_package_has_no_emulation_and_calls_no_side_wrong(verified, monkeypatch):
    monkeypatch.setattr(emulating, "_EMULATION", emulating.PROJECT_ROOT / "tests/nowhere")

    row = verified()[1]
    assert row.status == "SKIPPED"
    assert row.reason.endswith("--emulate: found no tests/nowhere, which a checkout has and an installed package has not")


def test_a_side_without_an_end_is_stopped(verified, monkeypatch):
    monkeypatch.setattr(emulating.sys, "executable", shutil.which("true"))
    monkeypatch.setattr(emulating, "_emulate", lambda workload, side, root, limit_s: (124, f"{side.name}: found no end in {limit_s:g} s"))
    monkeypatch.setattr(emulating.shutil, "which", lambda name: "/usr/bin/g++")

    assert verified()[1].status == "TIMEOUT"


def test_a_pair_whose_own_side_is_python_is_no_candidate(verified, tmp_path, here):
    (tmp_path / "root/ch01/optimized_row_sum.cu").unlink()
    (tmp_path / "root/ch01/optimized_row_sum.py").write_text(
        '"""Optimized: one call."""\n\nimport torch\n\n\ndef prepare(x):\n    return lambda: x.sum(1)\n'
    )
    finished = here("verify", "--emulate", "--device", "cpu", "--root", tmp_path / "root", "--artifacts-dir", tmp_path / "run")
    (row,) = load(tmp_path / "run")[1]

    assert (row.status, finished.code) == ("SKIPPED", 5)
    assert "optimized_row_sum.py is no CUDA C++" in row.reason


def test_a_run_has_no_such_flag_as_it_times_nothing(here):
    finished = here("run", "--emulate", "--targets", "ch01")

    assert finished.code == 1
    assert "--emulate" in finished.stderr
