"""The demo draws its loss, and says by its exit status whether the loss fell below the bound."""

from xml.etree import ElementTree as ET

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT


@pytest.mark.parametrize(("bound", "status"), [(0.1, 1), (5.4, 0)])
def test_train_deepseek_v3(bound, status, tmp_path, monkeypatch, capsys):
    demo = import_file(PROJECT_ROOT / "ch13" / "train_deepseek_v3.py")
    monkeypatch.setattr(demo, "STEPS", 25)
    monkeypatch.setattr(demo, "BOUND", bound)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert demo.main(tmp_path) == status
    assert ET.parse(tmp_path / "loss.svg").getroot().tag.endswith("svg")
    assert f"expected below {bound}" in capsys.readouterr().out
