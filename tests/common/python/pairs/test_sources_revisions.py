"""A side at another revision is what git has of it, and nothing of the checkout stays."""

import subprocess

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.pairs.sources import against, checkout
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
        chosen, notes = against(select(discover(root), ["ch07"]).selections, past)
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
            assert (past / "ch07" / "optimized_add.py").exists()
            if ending:
                raise ending
    except KeyboardInterrupt:
        pass

    assert not past.parent.exists()
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
            against([Selection(pair, ("optimized",))], past)
        with pytest.raises(BenchmarkError, match="found none of 1 targets at that revision"):
            against(select(discover(root), ["ch07:scale"]).selections, past)
