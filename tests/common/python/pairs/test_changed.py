"""--changed-since runs the pairs that a change touches: their files, and what these import or include."""

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.changed import NothingChanged, touched
from common.python.pairs.discovery import discover
from common.python.pairs.targets import select
from tests.common.python.pairs.test_revisions import git


@pytest.fixture
def root(tmp_path):
    """Two pairs, committed: of a, a side imports a file that imports another; of b, a side includes a header."""
    root = tmp_path / "tree" / "pairs"
    folder = root / "ch07"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        for role in ("workload", "baseline"):
            (folder / f"{role}_{name}.py").write_text("from common import Spec\n")
    (folder / "optimized_a.py").write_text("import shared_first\n")
    (folder / "shared_first.py").write_text("from mine.second import third\n")
    (root / "mine").mkdir()
    (root / "mine" / "second.py").write_text("")
    (folder / "optimized_b.cu").write_text('  #include "mine/tile.cuh"\n')
    (root / "mine" / "tile.cuh").write_text("")
    git(tmp_path / "tree", "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "first")
    return root


def found(root, revision="first"):
    return [each.pair.target for each in touched(select(discover(root), []).selections, root, revision)]


@pytest.mark.parametrize(
    ("file", "targets"),
    [
        ("ch07/workload_a.py", ["ch07:a"]),
        ("ch07/shared_first.py", ["ch07:a"]),
        ("mine/second.py", ["ch07:a"]),
        ("mine/tile.cuh", ["ch07:b"]),
        ("ch07/baseline_b.py", ["ch07:b"]),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_changed_file_is_that_of_the_pairs_that_read_it(root, file, targets, committed):
    (root / file).write_text("changed = 1\n")
    if committed:
        git(root, "commit", "-qam", "second")
    assert found(root) == targets


def test_a_new_pair_is_changed_and_a_page_is_nothing(root):
    (root / "ch07" / "README.md").write_text("# Page\n")
    with pytest.raises(NothingChanged, match="--changed-since first: found nothing to do; no file of 2 targets changed") as told:
        found(root)
    assert told.value.exit_code == 0
    for role in ("workload", "baseline", "optimized"):
        (root / "ch07" / f"{role}_c.py").write_text("")
    assert found(root) == ["ch07:c"]


def test_a_revision_that_is_none_is_told(root):
    with pytest.raises(BenchmarkError, match="--changed-since nowhere: found no such revision in "):
        found(root, "nowhere")
    with pytest.raises(BenchmarkError, match="expected a commit, a branch or a tag of its checkout"):
        found(root, "--help")
