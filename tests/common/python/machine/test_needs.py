"""What a `needs:` line may say, and what each compute capability answers."""

import sys

import pytest

from common.python.errors import BenchmarkError
from common.python.machine.needs import FEATURES, package_of, parse_need, unmet_capability, unmet_packages

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
    [
        ("package", "a package as Python imports it"),
        ("package 2kv", "a package as"),
        ("package kvikio 2", "a package as"),
        ("wgma", "expected wgmma"),
        ("tensor_memory", "expected tcgen05"),
        ("hopper", "expected wgmma"),
        ("gpus", "a count"),
        ("gpus two", "a count"),
        ("gpus 0", "a count"),
        ("tma 2", "without"),
        ("", "one of"),
    ],
)
def test_what_is_not_a_need_is_an_error_also_behind_an_unmet_one(need, expected):
    with pytest.raises(BenchmarkError, match=expected):
        unmet_capability(["tcgen05", need], (9, 0))


def test_a_package_is_a_need_by_the_name_that_python_imports():
    assert parse_need("package nvidia.nvcomp") == ("package nvidia.nvcomp", 1)
    assert (package_of("package nvidia.nvcomp"), package_of("disk")) == ("nvidia.nvcomp", "")
    assert unmet_capability(["package no_such_package"], (8, 0)) == ""


def test_a_package_that_is_not_installed_is_named_and_none_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    assert unmet_packages(["disk", "package wave", "package xml.dom"]) == ""
    assert "wave" not in sys.modules
    assert unmet_packages(["package wave", "package no_such"]) == "needs the Python package no_such; not installed"
    assert unmet_packages(["package no_such.inner", "package no_such"]) == "needs the Python packages no_such.inner, no_such; not installed"
