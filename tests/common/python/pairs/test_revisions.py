"""A side at another revision is what git has of it, and nothing of the checkout stays."""

import subprocess

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs import revisions
from common.python.pairs.discovery import discover
from common.python.pairs.revisions import against, checkout, unlike
from common.python.pairs.targets import Selection, select

NAMES = ("workload_add.py", "baseline_add.py", "optimized_add.py")


def git(folder, *arguments):
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path):
    """A checkout whose root lies below its top: at `first` one pair, then another."""
    root = tmp_path / "tree" / "pairs"
    folder = root / "ch07"
    folder.mkdir(parents=True)
    git(tmp_path / "tree", "init", "-q")
    for name in NAMES:
        (folder / name).write_text('"""Then."""\n')
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "first")
    for name in NAMES:
        (folder / name).write_text('"""Now."""\n')
        (folder / name.replace("add", "scale")).write_text('"""New."""\n')
    return root


def test_the_optimized_side_of_then_is_the_baseline_of_the_one_that_is_here(root):
    with checkout(root, "first") as past:
        chosen, notes = against(select(discover(root), ["ch07"]).selections, past.root)
        (selection,) = chosen

        assert (selection.pair.target, selection.sides) == ("ch07:add", ("baseline", "optimized"))
        assert selection.pair.sides["baseline"].name == "optimized_add.py"
        assert selection.pair.sides["baseline"].read_text() == '"""Then."""\n'
        assert selection.pair.sides["optimized"].read_text() == '"""Now."""\n'
        assert selection.pair.workload.read_text() == '"""Now."""\n'
        assert notes == ["ch07:scale did not exist at that revision: it is left out"]


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt])
def test_nothing_stays_however_it_ends(root, ending):
    try:
        with checkout(root, "first") as past:
            assert (past.root / "ch07" / "optimized_add.py").exists()
            if ending:
                raise ending
    except KeyboardInterrupt:
        pass

    assert not past.then.parent.exists()
    listed = subprocess.run(["git", "worktree", "list"], cwd=root, check=True, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1


@pytest.mark.parametrize("revision", ["nope", "--help", "first:pairs"])
def test_a_revision_that_is_none_is_one_sentence(root, revision):
    with (
        pytest.raises(BenchmarkError, match=f"--against {revision}: found no such revision in .*; expected a commit"),
        checkout(root, revision),
    ):
        pass


def test_a_folder_without_git_has_no_revisions(tmp_path):
    with pytest.raises(BenchmarkError, match="found no such revision"), checkout(tmp_path, "HEAD"):
        pass


def test_a_root_that_did_not_exist_then_is_one_sentence(root):
    late = root.parent / "late"
    late.mkdir()
    with pytest.raises(BenchmarkError, match=r"--against first: found nothing of .*late in it"), checkout(late, "first"):
        pass


def test_a_half_and_targets_that_are_all_new_are_errors(root):
    pair = select(discover(root), ["ch07:add"]).selections[0].pair
    with checkout(root, "first") as past:
        with pytest.raises(BenchmarkError, match="found one half of ch07:add; expected the pair"):
            against([Selection(pair, ("optimized",))], past.root)
        with pytest.raises(BenchmarkError, match="found none of 1 targets at that revision"):
            against(select(discover(root), ["ch07:scale"]).selections, past.root)


def test_what_cannot_be_unpacked_is_an_error(root, monkeypatch):
    monkeypatch.setattr(revisions, "_TAR", "false")
    with pytest.raises(BenchmarkError, match=r"--against first: found that tar cannot unpack it \(exit code 1\)"), checkout(root, "first"):
        pass


@pytest.fixture
def project(tmp_path):
    """A project with pairs in `bench` beside `src`, and a folder that is none of it; at `first` all files say so."""
    top = tmp_path / "tree"
    files = ("mine/pyproject.toml", "mine/bench/ch07/optimized_add.py", "mine/src/fast.py", "mine/late.py", "other/slow.py")
    for name in files:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text('x = "then"\n')
    git(tmp_path, "init", "-q", "tree")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    git(top, "tag", "first")
    return top / "mine"


def test_the_project_that_a_root_is_a_part_of_comes_with_it_and_nothing_else(project):
    (project / "src/fast.py").write_text('x = "now"\n')
    with checkout(project / "bench", "first") as past:
        assert past.root == past.then / "mine/bench"
        assert past.folders == (past.then / "mine", past.then / "mine/src")
        assert (past.then / "mine/src/fast.py").read_text() == 'x = "then"\n'
        assert past.as_now(past.then / "mine/src/fast.py") == project / "src/fast.py"
        assert not (past.then / "other").exists()


def test_a_folder_of_the_project_that_was_not_there_yet_is_left_out_and_one_that_was_is_found(project):
    git(project, "mv", "src", "lib")
    git(project, "commit", "-qm", "second")
    (project / "src").mkdir()
    with checkout(project / "bench", "first") as past:
        assert past.folders[1:] == (past.then / "mine/src",)
    with checkout(project / "bench", "HEAD") as past:
        assert past.folders == (past.then / "mine",)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("", []),
        ('"""Words."""\nx = "then"  # and layout\n', []),
        ('x = "now"\n', ["src/fast.py"]),
    ],
)
def test_two_sides_are_alike_while_all_that_they_imported_is(project, change, found):
    if change:
        (project / "src/fast.py").write_text(change)
    names = ("bench/ch07/optimized_add.py", "src/fast.py")
    with checkout(project / "bench", "first") as past:
        then, now = [past.then / "mine" / name for name in names], [project / name for name in names]
        assert unlike(past, then, now) == [project / name for name in found]


def test_two_sides_are_not_alike_where_one_imported_more_or_brings_other_machine_code(project):
    side = project / "bench/ch07/optimized_add.py"
    with checkout(project / "bench", "first") as past:
        then = past.root / "ch07/optimized_add.py"
        assert unlike(past, [then], [side, project / "late.py"]) == [project / "late.py"]
        assert unlike(past, [then, project / "late.py"], [side, project / "late.py"]) == []
        for folder, code in ((side.parent, b"1"), (then.parent, b"0")):
            (folder / "optimized_add.sm_90a.cubin").write_bytes(code)
        assert unlike(past, [then], [side]) == [side.with_name("optimized_add.sm_90a.cubin")]
