"""The RDMA card of gpudirect_rdma, connected to itself, against a library that only copies, but demands what a card demands."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from common.python.project import PROJECT_ROOT

FAKE = Path(__file__).parent / "fake_verbs"
TOLD = ["opens 1", "writes 1", "same 1", "again 1 70", "unread 0", "registered 3", "beyond 0", "left 0"]


def built(folder: Path, *arguments: str) -> None:
    subprocess.run(["g++", "-std=c++17", f"-I{PROJECT_ROOT}", *arguments], cwd=folder, check=True, timeout=100)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_the_card_connects_registers_once_and_writes(tmp_path: Path) -> None:
    built(tmp_path, f"-I{FAKE}", "-shared", "-fPIC", str(FAKE / "libibverbs.cpp"), "-o", "libibverbs.so.1")
    built(tmp_path, "-isystem", str(FAKE), str(FAKE / "program.cpp"), "-o", "program", "-ldl")
    here = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    ended = subprocess.run([tmp_path / "program"], env=here, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.splitlines() == TOLD
