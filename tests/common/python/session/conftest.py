"""Machines that plans are made for, and how."""

import pytest

from common.python.machine.description import Gpu, Machine
from common.python.pairs.discovery import discover
from common.python.pairs.targets import select
from common.python.session import planning
from common.python.session.planning import make_plans
from common.python.settings import Settings

H200 = Gpu(index=0, name="NVIDIA H200", uuid="GPU-1", capability=(9, 0), memory_bytes=141 << 30, driver="580.1")
WITHOUT_GPU = Machine(cpu="c", architecture="x86_64", cores=2, numa_nodes=1, memory_bytes=1 << 34, kernel="6", python="3.11")
WITH_GPU = WITHOUT_GPU.model_copy(update={"gpus": (H200,)})


@pytest.fixture
def plans(server, tmp_path):
    def made(*targets, machine=WITHOUT_GPU, selections=(), **choices):
        settings = Settings(root=tmp_path, **choices)
        selections = selections or select(discover(tmp_path), targets).selections
        return make_plans(selections, settings, machine, server, tmp_path / "logs")

    return made


@pytest.fixture
def on_a_gpu(plans, monkeypatch):
    monkeypatch.setattr(planning, "choose_device", lambda *_: "cuda")
    return lambda *targets, **choices: plans(*targets, machine=WITH_GPU, **choices)
