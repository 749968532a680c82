"""Trees of sysfs, of machines that others have: what each file says, and where the recording comes from."""

import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).with_name("sysfs")


@pytest.fixture
def sysfs(tmp_path):
    """Writes the recorded tree of that name below a folder of its own, and returns the folder."""

    def written(name):
        root = tmp_path / name
        for path, text in json.loads((RECORDED / f"{name}.json").read_text())["files"].items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{text}\n")
        return root

    return written
