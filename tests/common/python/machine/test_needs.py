"""What a `needs:` line may say, and what each compute capability answers."""

import pytest

from common.python.errors import BenchmarkError
from common.python.machine.needs import FEATURES, parse_need, unmet_capability

# The architectures that have each feature, out of Ampere, Ada, Hopper, two Blackwells of the data centre and one of the desk.
HAVE = {
    "wgmma": {(9, 0)},
    "tcgen05": {(10, 0), (10, 3)},
    "tma": {(9, 0), (10, 0), (10, 3), (12, 0)},
    "clusters": {(9, 0), (10, 0), (10, 3), (12, 0)},
    "fp8": {(8, 9), (9, 0), (10, 0), (10, 3), (12, 0)},
    "fp4": {(10, 0), (10, 3), (12, 0)},
    "ld_256bit": {(10, 0), (10, 3), (12, 0)},
}


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)])
def test_features_are_facts_about_a_chip_and_not_minima(capability):
    assert HAVE.keys() == FEATURES.keys()
    assert {name for name in FEATURES if not unmet_capability([name], capability)} == {n for n, have in HAVE.items() if capability in have}


def test_an_unmet_feature_is_named_with_what_has_it():
    reason = "needs compute capability 10.x (tcgen05); this is 9.0"
    assert unmet_capability(["tma", "tcgen05"], (9, 0)) == reason


def test_the_machine_around_the_gpu_says_nothing_of_its_architecture():
    assert unmet_capability(["gpus 2", "numa 2", "c2c", "nvme"], (8, 0)) == ""


def test_counts_are_read():
    assert [parse_need(need) for need in ("gpus 8", "nvme", "tma")] == [("gpus", 8), ("nvme", 1), ("tma", 1)]


@pytest.mark.parametrize(
    ("need", "expected"),
    [("wgma", "expected wgmma"), ("gpus", "a count"), ("gpus two", "a count"), ("gpus 0", "a count"), ("tma 2", "without"), ("", "one of")],
)
def test_what_is_not_a_need_is_an_error_also_behind_an_unmet_one(need, expected):
    with pytest.raises(BenchmarkError, match=expected):
        unmet_capability(["tcgen05", need], (9, 0))
