"""Chapter 2's pairs: sizes are those that the page and the predictions name, and the emulation computes requests in both ways."""

import re

import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch02"
MIB = 1 << 20


def workload(pair):
    return load_workload(CHAPTER / f"workload_{pair}.py")


@pytest.mark.parametrize(("name", "mib"), [("default", 1024), ("l2", 16)])
def test_the_tables_have_the_sizes_that_the_page_names(name, mib):
    shape = workload("memory_tiers").timed_shapes[name]
    assert 4 * shape["rows"] * shape["width"] == mib * MIB


def test_a_table_that_the_l2_holds_needs_no_dram_and_a_large_one_each_row_once():
    tiers = workload("memory_tiers")
    assert tiers.work(**tiers.timed_shapes["l2"])["dram_read"] == 0
    shape = {"rows": 1 << 22, "width": 128, "bags": 1, "per_bag": 1 << 20}
    ids = torch.randint(1 << 22, (1 << 20,), generator=torch.Generator().manual_seed(1))
    assert tiers.work(**shape)["dram_read"] == pytest.approx(512 * len(ids.unique()) - 64 * MIB, rel=1e-3)


def test_requests_are_of_16_kib_and_of_4_mib_and_their_rows_are_read_by_four_blocks():
    shape = workload("grace_coherent_memory").time_at
    row = 4 * shape["width"]
    assert (row * shape["small_rows"], row * shape["large_rows"]) == (16 << 10, 4 * MIB)
    text = (CHAPTER / "shared_requests.cuh").read_text()
    cols, threads = (int(re.search(rf"\b{name} = (\d+)", text)[1]) for name in ("TILE_COLS", "THREADS"))
    assert shape["width"] // cols == 4
    assert threads == 4 * cols


def test_a_check_shape_has_requests_on_both_sides_of_the_crossing_in_the_emulation():
    """There no time passes, so that the crossing is the largest power of two of rows that a request can have."""
    shapes = workload("grace_coherent_memory").check_at
    assert any(shape["large"] and shape["large_rows"] & (shape["large_rows"] - 1) for shape in shapes)


@pytest.mark.parametrize("bytes_", [0, 96 << 10])
def test_the_crossing_is_told_in_kib(bytes_):
    found = workload("grace_coherent_memory").metrics(torch.tensor([bytes_]))["crossing_kib"]
    assert (found.value, found.unit) == (bytes_ / 1024, "KiB")


@pytest.mark.parametrize("pair", ["memory_transfer", "nvlink_bidirectional"])
def test_256_mib_go_each_way(pair):
    shape = workload(pair).time_at
    assert 4 * shape["rows"] * shape["width"] == 256 * MIB


def test_both_sides_of_a_swap_make_the_same_copies():
    sides = [(CHAPTER / f"{side}_nvlink_bidirectional.cu").read_text() for side in ("baseline", "optimized")]
    assert [text.count(".send(x, bytes, stream)") for text in sides] == [1, 1]
    assert [len(re.findall(r"\.(?:fetch|send_home)\(fetched", text)) for text in sides] == [1, 1]


@pytest.mark.parametrize("pair", ["memory_transfer", "nvlink_bidirectional"])
def test_every_way_out_of_a_block_makes_the_harness_device_current_again(pair):
    """What changes the current device is `On` alone, which changes it back."""
    files = [CHAPTER / "shared_neighbour.cuh", CHAPTER / "shared_swap.cuh", *CHAPTER.glob(f"*_{pair}.cu")]
    text = "".join(file.read_text() for file in files)
    assert text.count("cudaSetDevice(") == 2
