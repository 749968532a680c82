"""Choices are frozen, known by name, and come back from JSON as they went in."""

import pytest
from pydantic import ValidationError

from common.python.project import PROJECT_ROOT
from common.python.settings import BASE_TIMEOUTS_S, Device, Profile, Settings


def test_limits_are_the_stated_ones_times_the_multiplier():
    assert {phase: Settings().timeout_s(phase) for phase in BASE_TIMEOUTS_S} == {
        "build": 300,
        "prepare": 240,
        "measure": 120,
        "profile": 180,
    }
    assert Settings(timeout_multiplier=0.5).timeout_s("build") == 150


def test_a_choice_cannot_be_changed_and_one_that_is_not_known_is_refused():
    with pytest.raises(ValidationError, match="frozen"):
        Settings().warmup = 3
    with pytest.raises(ValidationError, match="warmups"):
        Settings(warmups=3)


def test_settings_survive_json_whole():
    chosen = {"targets": ("ch01", "ch07:x"), "kwargs": {"n": "3"}, "sanitize": ("memcheck", "synccheck")}
    settings = Settings(device=Device.CPU, profile=Profile.ROOFLINE, warmup=0, root="/tmp", **chosen)
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def test_only_run_measures():
    assert Settings().measures
    assert not Settings(command="verify").measures


def test_the_project_is_found():
    assert (PROJECT_ROOT / "common/python/settings.py").is_file()
