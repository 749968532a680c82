"""ch05's way to kvikio, on one that is made up: in which mode it reads, and what cuFile may do when kvikio is imported."""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

KVIKIO = import_file(ROOT / "ch05/shared_kvikio.py")
VARIABLES = ("CUFILE_ENV_PATH_JSON", "CUFILE_ALLOW_COMPAT_MODE", "CUFILE_FORCE_COMPAT_MODE")


@pytest.fixture
def told(monkeypatch):
    """What kvikio is set to, from a fake of it; the variables of cuFile are as a user left them who wants copies."""
    settings = {}

    @contextmanager
    def hold(given):
        settings.update(given)
        yield
        settings.clear()

    defaults = SimpleNamespace(set=hold)
    monkeypatch.setitem(sys.modules, "kvikio", SimpleNamespace(defaults=defaults, CompatMode={"ON": "on", "OFF": "off"}))
    monkeypatch.setitem(sys.modules, "kvikio.defaults", defaults)
    for name in VARIABLES:
        monkeypatch.setenv(name, "true")
    return settings


def test_without_compatibility_mode_cufile_may_not_copy_through_the_host(told):
    with KVIKIO.kvikio_in("OFF"):
        path, allowed, forced = (os.environ[name] for name in VARIABLES)
        assert json.loads(Path(path).read_text(encoding="utf-8")) == {"properties": {"allow_compat_mode": False}}
        assert (allowed, forced) == ("false", "false")
        assert (told["compat_mode"], told["gds_threshold"]) == ("off", 0)
    assert not told


def test_in_compatibility_mode_cufile_is_left_alone(told):
    with KVIKIO.kvikio_in("ON"):
        assert [os.environ[name] for name in VARIABLES] == ["true"] * 3
        assert told["compat_mode"] == "on"
