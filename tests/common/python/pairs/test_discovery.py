"""What discovery makes of a tree's file names: the pairs, and one sentence for each file that is in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import canonical, discover
from common.python.project import PROJECT_ROOT
from tests.support.trees import pair_files, write


def found(root):
    """Targets of a tree without problems."""
    tree = discover(root)
    assert tree.problems == {}
    return [pair.target for pair in tree.pairs]


def problems(root):
    """All sentences of a tree."""
    return [sentence for sentences in discover(root).problems.values() for sentence in sentences]


def test_a_pair_is_its_three_files(tmp_path):
    write(tmp_path, ["ch07/workload_transpose.py", "ch07/baseline_transpose.py", "ch07/optimized_transpose.cu"])
    (pair,) = discover(tmp_path).pairs
    assert (pair.target, pair.directory, pair.name) == ("ch07:transpose", "ch07", "transpose")
    assert pair.workload == tmp_path / "ch07/workload_transpose.py"
    assert list(pair.sides.items()) == [
        ("baseline", tmp_path / "ch07/baseline_transpose.py"),
        ("optimized", tmp_path / "ch07/optimized_transpose.cu"),
    ]


def test_a_library_is_the_third_side_of_the_pair_and_of_its_variants(tmp_path):
    write(tmp_path, [*pair_files("ch07:copy"), "ch07/library_copy.py", "ch07/optimized_copy_wide.cu", *pair_files("ch07:add")])
    sides = {pair.name: pair.sides for pair in discover(tmp_path).pairs}
    assert list(sides["add"]) == ["baseline", "optimized"]
    assert list(sides["copy"]) == ["baseline", "optimized", "library"]
    assert sides["copy_wide"]["library"] == tmp_path / "ch07/library_copy.py"


def test_a_variant_has_the_workload_and_the_baseline_of_the_longest_stem_it_starts_with(tmp_path):
    write(tmp_path, [*pair_files("ch08:ilp", "ch08:ilp_pytorch"), "ch08/optimized_ilp_pytorch_wide.cu", "ch08/optimized_ilp_deep.cu"])
    owners = {pair.target: (pair.workload.name, pair.sides["baseline"].name) for pair in discover(tmp_path).pairs}
    assert owners == {
        "ch08:ilp": ("workload_ilp.py", "baseline_ilp.py"),
        "ch08:ilp_deep": ("workload_ilp.py", "baseline_ilp.py"),
        "ch08:ilp_pytorch": ("workload_ilp_pytorch.py", "baseline_ilp_pytorch.py"),
        "ch08:ilp_pytorch_wide": ("workload_ilp_pytorch.py", "baseline_ilp_pytorch.py"),
    }


def test_a_stem_that_only_begins_alike_is_no_variant(tmp_path):
    write(tmp_path, [*pair_files("ch07:copy"), "ch07/optimized_copying.cu"])
    assert problems(tmp_path) == ["ch07/optimized_copying.cu: found no workload for it; expected ch07/workload_copying.py"]


def test_a_workload_may_have_variants_alone(tmp_path):
    write(tmp_path, ["labs/chat/workload_chat.py", "labs/chat/baseline_chat.py", "labs/chat/optimized_chat_fp8.py"])
    assert found(tmp_path) == ["labs/chat:chat_fp8"]


def test_pairs_are_sorted_and_come_from_the_root_its_folders_and_theirs(tmp_path):
    root = tmp_path / "kernels"
    write(root, pair_files("ch10:b", "ch10:a", "ch02:z", "labs/x:y", "labs/fullstack:09_end_to_end", ".:softmax"))
    assert found(root) == ["ch02:z", "ch10:a", "ch10:b", "kernels:softmax", "labs/fullstack:09_end_to_end", "labs/x:y"]
    assert discover(root).directories == ("ch02", "ch10", "kernels", "labs/fullstack", "labs/x")


def test_what_is_no_part_of_a_pair_is_ignored(tmp_path):
    write(tmp_path, pair_files("ch07:copy"))
    write(
        tmp_path,
        ["ch07/shared_tiles.cuh", "ch07/performance_basics.py", "ch07/README.md", "ch07/optimized_copy.py.orig", "ch07/baseline_.py"],
    )
    (tmp_path / "ch07/baseline_folder.py").mkdir()
    assert found(tmp_path) == ["ch07:copy"]


@pytest.mark.parametrize(
    "folder", ["tests", "artifacts", "common", "tools", "build", ".venv", "ch07/.cache", "ch07/__pycache__", "labs/x/deep"]
)
def test_folders_that_hold_no_pairs_are_not_searched(tmp_path, folder):
    write(tmp_path, [*pair_files("ch07:copy"), f"{folder}/optimized_orphan.py"])
    assert found(tmp_path) == ["ch07:copy"]


def test_a_root_may_be_called_like_a_folder_that_is_not_searched(tmp_path):
    write(tmp_path / "tests", pair_files(".:cheat"))
    assert found(tmp_path / "tests") == ["tests:cheat"]


def test_the_root_must_be_a_folder(tmp_path):
    with pytest.raises(BenchmarkError, match=r"--root .*/nowhere: found no such folder"):
        discover(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("workload_copy.py", "ch07/baseline_copy.py: found no workload for it; expected ch07/workload_copy.py"),
        ("optimized_copy.py", "ch07/workload_copy.py: found no optimized side; expected ch07/optimized_copy.py or .cu"),
        ("baseline_copy.py", "ch07/workload_copy.py: found no baseline; expected ch07/baseline_copy.py or .cu, or a line"),
    ],
)
def test_a_file_that_is_missing_is_named(tmp_path, missing, sentence):
    write(tmp_path, pair_files("ch07:copy", "ch07:add", "ch08:ilp"))
    (tmp_path / "ch07" / missing).unlink()
    tree = discover(tmp_path)
    assert list(tree.problems) == ["ch07"]
    assert tree.problems["ch07"][0].startswith(sentence)
    assert [pair.target for pair in tree.pairs] == ["ch07:add", "ch08:ilp"]


@pytest.mark.parametrize("orphan", ["baseline_wide.cu", "optimized_wide.py", "library_copy_wide.py", "baseline_copy_wide.py"])
def test_a_side_without_a_workload_is_an_orphan(tmp_path, orphan):
    write(tmp_path, [*pair_files("ch07:copy"), f"ch07/{orphan}"])
    assert [sentence.split(":")[0] for sentence in problems(tmp_path)] == [f"ch07/{orphan}"]


@pytest.mark.parametrize("role", ["baseline", "optimized", "library"])
def test_one_side_in_two_languages_is_ambiguous(tmp_path, role):
    write(tmp_path, [*pair_files("ch07:copy"), f"ch07/{role}_copy.py", f"ch07/{role}_copy.cu"])
    assert problems(tmp_path) == [f"ch07/{role}_copy.py: found {role}_copy.cu beside it; expected one of the two"]


@pytest.mark.parametrize("name", ["copy_baseline", "copy_optimized", "baseline_copy", "optimized_copy"])
def test_a_name_that_reads_as_a_half_is_ambiguous(tmp_path, name):
    write(tmp_path, pair_files(f"ch07:{name}"))
    (sentence,) = problems(tmp_path)
    assert sentence.startswith(f"ch07/workload_{name}.py: found the name {name}, which reads as one half of a pair")


def test_a_variant_that_reads_as_a_half_is_ambiguous(tmp_path):
    write(tmp_path, [*pair_files("ch07:copy"), "ch07/optimized_copy_baseline.cu"])
    assert problems(tmp_path)[0].startswith("ch07/optimized_copy_baseline.cu: found the name copy_baseline")


@pytest.mark.parametrize(("folders", "spoilt"), [(("ch7", "ch07"), "ch7"), ((".", "kernels"), "kernels")])
def test_two_folders_of_one_name_are_ambiguous(tmp_path, folders, spoilt):
    root = write(tmp_path / "kernels", pair_files(*(f"{folder}:copy" for folder in folders)))
    problems = discover(root).problems
    assert list(problems) == [spoilt]
    assert "which targets call by the same name" in problems[spoilt][0]


def borrower(root, directive):
    """A tree in which ch17:disagg says where its baseline is."""
    write(root, ["ch17/optimized_disagg.py", "ch17/workload_disagg.py", *pair_files("ch15:monolithic")])
    (root / "ch17/workload_disagg.py").write_text(f'"""Serve."""\n# {directive}\n', encoding="utf-8")
    return root


def test_a_workload_borrows_a_baseline_by_its_path_from_the_root(tmp_path):
    tree = discover(borrower(tmp_path, "baseline: ch15/baseline_monolithic.py"))
    assert tree.problems == {}
    assert tree.pairs[1].target == "ch17:disagg"
    assert tree.pairs[1].sides["baseline"] == tmp_path / "ch15/baseline_monolithic.py"


def test_a_baseline_that_only_others_use_is_no_orphan(tmp_path):
    borrower(tmp_path, "baseline: ch15/baseline_shared.py")
    write(tmp_path, ["ch15/baseline_shared.py"])
    assert found(tmp_path) == ["ch15:monolithic", "ch17:disagg"]


@pytest.mark.parametrize(
    "path", ["ch15/baseline_gone.py", "baseline_monolithic.py", "../outside/baseline_x.py", "ch15/workload_monolithic.py"]
)
def test_a_borrowed_baseline_must_be_a_side_under_the_root(tmp_path, path):
    write(tmp_path, ["outside/baseline_x.py"])
    root = borrower(tmp_path / "root", f"baseline: {path}")
    expected = "expected the path, from the root, of a side that exists"
    assert problems(root) == [f"ch17/workload_disagg.py: found `baseline: {path}`; {expected}"]


def test_a_broken_directive_in_a_workload_that_must_be_read_is_its_problem(tmp_path):
    (sentence,) = problems(borrower(tmp_path, "baselines: ch15/baseline_monolithic.py"))
    assert sentence.endswith("workload_disagg.py:2: found directive 'baselines'; expected 'baseline'")


def test_no_file_is_opened_where_names_suffice(tmp_path):
    write(tmp_path, pair_files("ch07:copy"))
    (tmp_path / "ch07/workload_copy.py").write_bytes(b"# baseline: \xff")
    assert found(tmp_path) == ["ch07:copy"]


def test_a_folder_that_cannot_be_read_is_a_problem_of_that_folder_alone(tmp_path, monkeypatch):
    write(tmp_path, [*pair_files("ch07:copy"), "secret/file"])
    real = os.scandir

    def refuse(path):
        if path == tmp_path / "secret":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    tree = discover(tmp_path)
    assert tree.problems == {"secret": ("secret: found Permission denied; expected a folder that can be read",)}
    assert len(tree.pairs) == 1


@pytest.mark.parametrize(
    ("given", "spelt"),
    [
        ("ch7", "ch07"),
        ("ch7:x", "ch07:x"),
        ("ch07:x", "ch07:x"),
        ("ch10", "ch10"),
        ("ch7/", "ch07"),
        ("labs/ch7:ch7", "labs/ch7:ch7"),
        ("ch7b", "ch7b"),
    ],
)
def test_one_digit_chapters_have_a_zero(given, spelt):
    assert canonical(given) == spelt


def test_the_project_itself_has_no_problems():
    assert discover(PROJECT_ROOT).problems == {}


def test_two_hundred_pairs_are_found_in_50_ms(tmp_path):
    write(tmp_path, pair_files(*(f"ch{chapter:02}:pair_{number}" for chapter in range(1, 21) for number in range(10))))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert len(discover(tmp_path).pairs) == 200
        times.append(time.perf_counter() - start)
    assert min(times) < 0.050


def test_naming_targets_loads_nothing_slow():
    program = "import sys, common.python.pairs.discovery, common.python.pairs.targets; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "common.python.pairs.targets" in loaded
    assert not {"torch", "numpy", "pydantic", "typer", "rich"} & set(loaded)
