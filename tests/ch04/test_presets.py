"""NCCL's presets: what none may set, that what is set stays, and that a preset is taken only where it wins."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
presets = import_file(CHAPTER / "shared_nccl_presets.py")
config = import_file(CHAPTER / "nccl_blackwell_config.py")
FORBIDDEN = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}
FIELDS = {"min_ctas", "max_ctas", "cga_cluster_size"}


def test_no_preset_forces_an_algorithm_or_multicast():
    for environment in presets.ENVIRONMENTS.values():
        assert not FORBIDDEN & environment.keys()
        assert all(name.startswith("NCCL_") and isinstance(value, str) for name, value in environment.items())
        assert environment.get("NCCL_NET_GDR_LEVEL", "SYS") in {"LOC", "PIX", "PXB", "PHB", "SYS"}  # no numbers


def test_communicators_have_fields_of_nccl_in_its_range():
    for fields in presets.COMMUNICATORS.values():
        assert fields.keys() <= FIELDS
        assert 1 <= fields.get("min_ctas", 1) <= fields.get("max_ctas", 32) <= 32
        assert 0 <= fields.get("cga_cluster_size", 0) <= 8
    assert presets.COMMUNICATORS[presets.DEFAULTS] == presets.ENVIRONMENTS[presets.DEFAULTS] == {}


@pytest.mark.parametrize(
    ("times", "preset"),
    [
        ({"defaults": 10.0, "few_sms": 9.0}, "few_sms"),
        ({"defaults": 10.0, "few_sms": 9.9}, "defaults"),  # less than noise
        ({"defaults": 10.0, "few_sms": 11.0}, "defaults"),
        ({"defaults": 10.0, "8xb200": 9.0, "few_sms": 8.0}, "few_sms"),
        ({"defaults": 10.0}, "defaults"),
    ],
)
def test_a_preset_never_loses_to_the_defaults(times, preset):
    assert config.chosen(times) == preset


def test_what_the_environment_has_stays(monkeypatch, capsys):
    monkeypatch.setenv("NCCL_CUMEM_ENABLE", "0")
    monkeypatch.delenv("NCCL_MNNVL_ENABLE", raising=False)
    monkeypatch.delenv("NCCL_NET_GDR_LEVEL", raising=False)
    assert config.main(["--preset", "nvl72"]) == 0
    assert capsys.readouterr().out.splitlines() == ["export NCCL_MNNVL_ENABLE=1", "export NCCL_NET_GDR_LEVEL=SYS"]


def test_communicators_are_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(presets.dist, "get_backend", lambda: made.append(1) or "gloo")
    presets.communicators.cache_clear()
    assert presets.communicators() is presets.communicators()  # a short step is set up in many copies, each of which asks
    assert made == [1]
    presets.communicators.cache_clear()


@pytest.mark.parametrize(
    ("rounds", "preset"),
    [
        ([{"defaults": 10.0, "few_sms": 9.0}, {"defaults": 10.0, "few_sms": 9.1}], "few_sms"),
        ([{"defaults": 10.0, "few_sms": 9.0}, {"defaults": 10.0, "few_sms": 9.9}], "defaults"),  # the first win was chance
        ([{"defaults": 10.0, "few_sms": 9.0, "nvl72": 9.9}, {"defaults": 10.0, "few_sms": 9.9, "nvl72": 9.0}], "defaults"),
    ],
)
def test_a_preset_must_win_twice(monkeypatch, rounds, preset):
    found = iter([{}, *rounds])  # the first only connects ranks
    monkeypatch.setattr(config, "communicators", lambda: {name: name for name in rounds[0]})
    monkeypatch.setattr(config, "measured", lambda groups, buffer: next(found))
    assert config.fastest_for(None) == preset
