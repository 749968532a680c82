"""Clusters on the CPU: multicast loads and remote arrivals give right sums, none of their waits can be left out, and misuse is an error."""

import re
import shutil

import pytest
import torch

from tests.ch09.sides import code_of
from tests.ch10.emulated import LAZINESS, build
from tests.support.teeth import ROOT

pytestmark = pytest.mark.slow

HOME = ROOT / "tests" / "ch10"
RING = "cluster_ring.cu"
TEXT = (HOME / RING).read_text()
ROWS = 100  # seven steps, the last one clipped


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    return build(RING, tmp_path_factory.mktemp("ring"), HOME)


def is_right(ring, blocks=4, **how):
    x = torch.randint(-8, 8, (ROWS, 64), generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    y = torch.full((blocks, 32), torch.nan)
    ring.launch(x, y, ROWS, blocks, **how)
    return torch.equal(y.view(-1, 64), x.float().sum(0).expand(blocks // 2, 64))


@pytest.mark.parametrize("laziness", LAZINESS)
def test_sums_are_right_however_late_copies_are(ring, laziness):
    assert all(is_right(ring, laziness=laziness, seed=seed) for seed in range(8))


NEEDED = [
    (number, line.strip())
    for number, line in enumerate(TEXT.splitlines(), 1)
    if re.search(r"\b(barrier_wait|cluster_sync|show_barriers_to_cluster)\(", line)
]


def test_all_that_waits_was_found():
    assert len(NEEDED) == 5


@pytest.mark.parametrize(("line", "text"), NEEDED)
def test_nothing_that_waits_can_be_left_out(ring, line, text):
    for laziness in LAZINESS:
        for seed in range(8):
            try:
                if not is_right(ring, laziness=laziness, seed=seed, skipped=f"{RING}:{line}"):
                    return
            except RuntimeError:
                return
    pytest.fail(f"right without `{text}`")


def spoiled(folder, old, new):
    assert old in TEXT
    (folder / RING).write_text(TEXT.replace(old, new))
    return build(RING, folder, folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("peer < CLUSTER", "peer < 1", "deadlock"),
        ("blocks, THREADS, sizeof", "blocks - 1, THREADS, sizeof", "no whole number of clusters"),
        ("shared.loaded[stage], 3)", "shared.loaded[stage], 7)", "a multicast to blocks that the cluster does not have"),
        ("    cluster_sync();\n}", "}", "ended"),
        ("        show_barriers_to_cluster();\n", "", "not shown to the cluster"),
        ("        for (uint64_t& barrier : shared.consumed) barrier_init(&barrier, CLUSTER);\n", "", "not initialized"),
    ],
)
def test_what_a_cluster_must_not_do_is_an_error(tmp_path, old, new, message):
    wrong = spoiled(tmp_path, old, new)
    with pytest.raises(RuntimeError, match=message):
        _ = [is_right(wrong, seed=seed, laziness="late") for seed in range(8)]


def test_machine_code_has_the_instructions_and_no_fence_of_the_gpu_for_an_arrival():
    code = code_of(HOME / RING)

    def count(pattern):
        return sum(bool(re.search(pattern, text)) for text in code)

    assert count(r"UTMALDG\.2D\.MULTICAST")
    assert count(r"SYNCS\.ARRIVE\.TRANS64\.RED\.A1T0")
    assert count("UCGABAR_ARV") == count("UCGABAR_WAIT") == count(r"MEMBAR\.ALL\.GPU") == 2  # each barrier of the cluster releases once
