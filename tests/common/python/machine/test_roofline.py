"""Shares and floors on machines with round numbers: which ceiling counts, what a cache may have kept, and what is too fast."""

import pytest

from common.python.errors import SideFailure, Status
from common.python.machine.roofline import Ceilings, Conditions, amount_text, bounds_of, mixed_ns, value_text, with_shares
from common.python.results import WARM_FILES, Block, Unit
from tests.support.factories import a_timing, an_interval
from tests.support.synthetic_ceilings import CEILINGS, a_ceiling, synthetic_ceilings

GB = 1e9
MB = 1e6
FAST_END = 1.01  # each ceiling of synthetic_ceilings is known to 1 %
FILES = {"baseline": "baseline_x.py", "optimized": "optimized_x.py"}


def bound(work, kept=None, **timing):
    """The only bound of `work` under the conditions of a timing."""
    conditions = Conditions.of(a_timing(**timing))
    ((found,), notes) = bounds_of(work, conditions, Ceilings(kept or synthetic_ceilings(), conditions.mode))
    assert notes == []
    return found


def shares(work, kept=None, sides=None, **timing):
    return with_shares(a_timing(sides, **timing), work, kept or synthetic_ceilings(), FILES)


# --- reads and writes are one key, at the bandwidth of their mix


@pytest.mark.parametrize(
    ("read", "written", "expected_ns"),
    [
        (4.0, 0.0, 1.0),  # all read, at 4 TB/s
        (1.6, 1.6, 1.0),  # a copy at 3.2
        (0.0, 2.0, 1.0),  # all written, at 2
        (3.0, 1.0, 4.0 * (1 / 4 + 1 / 3.2) / 2),  # half-way from read to copy, in time a byte
        (1.0, 3.0, 4.0 * (1 / 3.2 + 1 / 2) / 2),
    ],
)
def test_the_time_of_a_mix_lies_between_those_measured(read, written, expected_ns):
    per_byte = Ceilings(synthetic_ceilings(), "burst").byte_ns("dram")

    assert mixed_ns(per_byte, read * 1e3, written * 1e3) == pytest.approx(expected_ns)


def test_dram_is_one_key():
    found = bound({"dram_read": 1.6 * GB, "dram_write": 1.6 * GB})

    assert (found.key, found.amount) == ("dram", 3.2 * GB)
    assert found.ceiling_ns == pytest.approx(1e6)


def test_reads_alone_need_no_writes_in_the_work():
    assert bound({"dram_read": 4 * GB}).ceiling_ns == pytest.approx(1e6)


def test_work_of_zero_is_no_work():
    assert bounds_of({"dram_read": 0, "fp32": 0}, Conditions.of(a_timing()), Ceilings(synthetic_ceilings(), "burst")) == ([], [])


# --- what a cache may have kept


def test_a_cold_read_larger_than_the_l2_has_the_ceiling_for_a_floor():
    found = bound({"dram_read": 4 * GB})

    assert found.floor_ns == found.ceiling_ns


def test_what_a_cold_write_leaves_dirty_in_the_l2_is_not_in_the_floor():
    found = bound({"dram_write": 2 * GB})

    assert found.ceiling_ns == pytest.approx(1e6)
    assert found.floor_ns == pytest.approx(1e6 * (2 * GB - 50 * MB) / (2 * GB))


def test_data_that_fits_the_l2_has_the_l2_for_a_floor_even_if_it_was_cold():
    found = bound({"dram_read": 40 * MB})

    assert found.key == "dram"
    assert found.ceiling_ns == pytest.approx(10e3)  # at 4 TB/s
    assert found.floor_ns == pytest.approx(2e3)  # at 20


def test_the_l2_may_read_and_write_at_once():
    found = bound({"dram_read": 20 * MB, "dram_write": 20 * MB})

    assert found.floor_ns == pytest.approx(20 * MB / 10e12 * 1e9)


def test_hot_data_that_fits_is_held_against_the_l2():
    found = bound({"dram_read": 40 * MB}, cache="hot")

    assert found.key == "l2"
    assert found.ceiling_ns == found.floor_ns == pytest.approx(2e3)


@pytest.mark.parametrize("conditions", [{"cache": "hot"}, {"mode": "sustained"}, {"calls_per_sample": {"baseline": 1, "optimized": 4}}])
def test_what_another_call_may_have_left_in_the_l2_is_not_in_the_floor(conditions):
    found = bound({"dram_read": 4 * GB}, **conditions)

    assert found.key == "dram"
    assert found.ceiling_ns == pytest.approx(1e6)
    assert found.floor_ns == pytest.approx(1e6 * (4 * GB - 50 * MB) / (4 * GB))


def test_data_in_a_cache_that_nobody_measured_has_no_share():
    kept = synthetic_ceilings(device="cpu", ceilings=tuple(c for c in CEILINGS if not c.name.startswith("l2")))
    timing = shares({"dram_read": 40 * MB}, kept, device="cpu", clock="host")

    assert timing.shares == {}
    assert timing.notes == ("no share of memory bandwidth: the data fits the cache, whose ceiling was not measured",)


# --- the other keys


def test_the_longest_key_is_the_one_that_counts():
    timing = shares({"dram_read": 40 * MB, "bf16": 16e9}, sides={"baseline": 80e3, "optimized": 25e3})

    assert {side: (share.key, share.share) for side, share in timing.shares.items()} == {
        "baseline": ("bf16", pytest.approx(0.25)),
        "optimized": ("bf16", pytest.approx(0.8)),
    }


def test_the_floor_is_the_highest_over_the_keys():
    # dram is the nearer ceiling, 12.5 against 10 µs; but reads that fit the L2 could take 2.5.
    share = shares({"dram_read": 50 * MB, "bf16": 8e9}).shares["baseline"]

    assert share.key == "dram"
    assert share.floor_ns == pytest.approx(10e3 / FAST_END)


def test_another_unit_may_do_the_work_of_a_key():
    found = bound({"fp32": 60e6})

    assert found.ceiling_ns == pytest.approx(1200.0)
    assert found.floor_ns == pytest.approx(1000.0 / FAST_END)


@pytest.mark.parametrize(("rate", "floor_ns"), [(1000e12, 800.0), (600e12, 1000.0)])
def test_mma_sync_lowers_the_floor_of_bf16_only_where_it_is_faster_than_the_library(rate, floor_ns):
    found = bound({"bf16": 0.8e9}, synthetic_ceilings(ceilings=(*CEILINGS, a_ceiling("bf16_mma_sync", rate, "flop/s"))))

    assert found.ceiling_ns == pytest.approx(1000.0)
    assert found.floor_ns == pytest.approx(floor_ns / FAST_END)


def test_peers_have_the_faster_direction():
    assert bound({"peer": 0.4 * GB}).ceiling_ns == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("clock", "keys"),
    [("launch", ["launch"]), ("host", ["launch"]), ("device", [])],
)
def test_launches_count_where_the_clock_sees_them(clock, keys):
    bounds, notes = bounds_of({"launch": 3}, Conditions.of(a_timing(clock=clock)), Ceilings(synthetic_ceilings(), "burst"))

    assert [found.key for found in bounds] == keys
    assert [found.ceiling_ns for found in bounds] == [pytest.approx(6e3)] * len(keys)
    assert notes == []


def test_a_key_without_a_ceiling_is_named():
    timing = shares({"fp8": 1e9, "h2d": 50e3})

    assert timing.shares["optimized"].key == "h2d"
    assert timing.notes == ("no share of fp8: it is not among this machine's ceilings",)


def test_reads_from_the_page_cache_are_no_share_of_storage():
    assert shares({"storage_read": 5e3}, clock="host").shares["baseline"].key == "storage_read"
    assert shares({"storage_read": 5e3}, clock="host", notes=(WARM_FILES,)).shares == {}


def test_a_start_from_nothing_has_no_share():
    timing = a_timing(mode="cold_start")

    assert with_shares(timing, {"dram_read": 4 * GB}, synthetic_ceilings(), FILES) is timing


# --- which of several ceilings of a name


def test_the_mode_chooses_the_ceiling():
    kept = synthetic_ceilings(ceilings=(*CEILINGS, a_ceiling("bf16", 600e12, "flop/s", mode="sustained")))

    assert bound({"bf16": 48e9}, kept).ceiling_ns == pytest.approx(60e3)
    assert bound({"bf16": 48e9}, kept, mode="sustained").ceiling_ns == pytest.approx(80e3)


def test_a_mode_that_was_not_measured_has_the_ceiling_of_the_other():
    assert bound({"bf16": 48e9}, mode="sustained").ceiling_ns == pytest.approx(60e3)


@pytest.mark.parametrize("order", [1, -1])
def test_the_l2_that_a_side_finds_is_clean(order):
    dirty = [a_ceiling(f"dram_{kind}", 1e12, "bytes/s", l2="dirty") for kind in ("read", "copy", "write")]

    assert bound({"dram_read": 4 * GB}, synthetic_ceilings(ceilings=(*CEILINGS, *dirty)[::order])).ceiling_ns == pytest.approx(1e6)


# --- the clock that was held


def test_the_share_at_the_clock_that_the_samples_held():
    clocks = {"baseline": (1.6e9, 1.6e9, 9e9), "optimized": ()}
    blocks = {side: (Block(seed=1, samples_ns=(80e3,), sm_clock_hz=held),) for side, held in clocks.items()}
    timing = shares(
        {"bf16": 48e9}, sides={"baseline": 80e3, "optimized": 80e3}, units=(Unit(order=("baseline", "optimized"), blocks=blocks),)
    )

    assert timing.shares["baseline"].share == pytest.approx(0.75)
    assert timing.shares["baseline"].at_held_clock == pytest.approx(0.75 * 2.0 / 1.6)
    assert timing.shares["optimized"].at_held_clock is None


def test_memory_does_not_go_with_the_clock_of_the_sms():
    blocks = {side: (Block(seed=1, samples_ns=(2e6,), sm_clock_hz=(1e9,)),) for side in FILES}
    timing = shares({"dram_read": 4 * GB}, sides=dict.fromkeys(FILES, 2e6), units=(Unit(order=("baseline", "optimized"), blocks=blocks),))

    assert timing.shares["baseline"].at_held_clock is None


# --- too fast


def too_fast(work, ns, **timing):
    with pytest.raises(SideFailure) as caught:
        shares(work, sides={"baseline": 1e9, "optimized": ns}, **timing)
    assert caught.value.status is Status.IMPLAUSIBLE
    return caught.value.reason


def test_a_time_under_the_floor_is_implausible_and_says_why():
    assert too_fast({"dram_read": 536e6}, 12_100.0) == (
        "optimized_x.py: found 12.1 µs for 536 MB of dram, which is 44.3 TB/s; this GPU's measured ceiling is 4.00 TB/s; "
        "expected no more than that"
    )


def test_launches_that_are_too_quick_are_implausible():
    assert too_fast({"launch": 3}, 1_000.0, clock="launch") == (
        "optimized_x.py: found 1.00 µs for 3 launches; this GPU's measured ceiling is 2.00 µs each; expected no more than that"
    )


def test_a_ceiling_that_scattered_accuses_no_side_within_its_interval():
    # A virtual machine's copies: 32.9 GB/s to 32 %. A side at 41 GB/s is honest; one at 50 is not.
    scattered = a_ceiling("h2d", 32.9 * GB, "bytes/s").model_copy(update={"value": an_interval(32.9 * GB, 10.5 * GB)})
    kept = synthetic_ceilings(ceilings=(*(one for one in CEILINGS if one.name != "h2d"), scattered))
    work = {"h2d": 134e6}

    assert shares(work, kept, {"optimized": 134e6 / 41}).shares["optimized"].share > 1
    with pytest.raises(SideFailure, match=r"50\.0 GB/s; this GPU's measured ceiling is 32\.9 GB/s"):
        shares(work, kept, {"optimized": 134e6 / 50})


@pytest.mark.parametrize(("device", "clock", "tolerance"), [("cuda", "device", 1.05), ("cpu", "host", 2.0)])
def test_the_tolerance_is_small_on_a_gpu_and_larger_on_a_cpu(device, clock, tolerance):
    work, floor_ns = {"bf16": 48e9}, 60e3 / FAST_END
    kept = synthetic_ceilings(device=device)

    assert shares(work, kept, {"optimized": floor_ns / tolerance * 1.001}, device=device, clock=clock).shares["optimized"].share > 1
    with pytest.raises(SideFailure):
        shares(work, kept, {"optimized": floor_ns / tolerance * 0.999}, device=device, clock=clock)


def test_a_half_has_a_share_of_its_own():
    timing = shares({"dram_read": 4 * GB}, sides={"optimized": 2e6})

    assert timing.shares.keys() == {"optimized"}
    assert timing.shares["optimized"].share == pytest.approx(0.5)
    assert timing.shares["optimized"].ceiling_ns == pytest.approx(1e6)


# --- words


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.3e12, "bytes/s", "4.30 TB/s"),
        (55.5e9, "bytes/s", "55.5 GB/s"),
        (799.4e12, "flop/s", "799 TFLOP/s"),
        (999.9e9, "flop/s", "1.00 TFLOP/s"),
        (2.1e-6, "s", "2.10 µs"),
    ],
)
def test_a_value_in_words(value, unit, text):
    assert value_text(value, unit) == text


def test_an_amount_in_words():
    assert [amount_text(amount, "bytes/s") for amount in (0.5, 12, 536e6)] == ["0.500 B", "12.0 B", "536 MB"]
