"""The exporter's page from an NVML that answers what it is told, and the dashboard: a valid one, of metrics that exist."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import jsonschema
import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT
from common.serving.metrics import Latencies
from tests.support.fake_nvml import FakeGpu, FakeNvml

SCRIPT = PROJECT_ROOT / "ch16/dcgm_prometheus_exporter.py"
DASHBOARD = json.loads((PROJECT_ROOT / "ch16/grafana_dashboard.json").read_text())
KNOWN = {"MemoryInfo": SimpleNamespace(used=5 << 20)}
NUMBER, TEXT = {"type": "integer"}, {"type": "string", "minLength": 1}
TARGET = {"type": "object", "required": ["refId", "expr"], "properties": {"refId": TEXT, "expr": TEXT}}
PANEL = {
    "type": "object",
    "required": ["id", "title", "type", "gridPos", "targets", "datasource"],
    "properties": {
        "id": NUMBER,
        "title": TEXT,
        "type": {"enum": ["timeseries", "stat", "gauge"]},
        "gridPos": {"type": "object", "required": ["h", "w", "x", "y"], "additionalProperties": NUMBER},
        "targets": {"type": "array", "minItems": 1, "items": TARGET},
    },
}
SCHEMA = {  # what Grafana's import asks of a dashboard
    "type": "object",
    "required": ["title", "uid", "schemaVersion", "panels", "templating", "time"],
    "properties": {"title": TEXT, "uid": TEXT, "schemaVersion": NUMBER, "panels": {"type": "array", "minItems": 1, "items": PANEL}},
}


class Family:
    def __init__(self, name, text, labels):
        self.name, self.labels, self.samples = name, labels, []

    def add_metric(self, labels, value):
        self.samples.append((labels, value))


def collected(*gpus):
    nvml = FakeNvml(*gpus)
    vars(nvml).update(nvmlDeviceGetCount=lambda: len(gpus), nvmlDeviceGetHandleByIndex=lambda i: gpus[i])
    return {family.name: family.samples for family in import_file(SCRIPT).Gpus(nvml, Family).collect()}


def test_each_gpu_says_what_its_driver_knows():
    full = {**KNOWN, "PowerUsage": 300_000, "UtilizationRates": SimpleNamespace(gpu=70)}
    found = collected(FakeGpu(answers=full | {"ClockInfo": 1980}), FakeGpu(uuid="GPU-2", answers=KNOWN | {"PowerUsage": 100_000}))
    first = ("0", "GPU-11111111-aaaa", "NVIDIA Test")
    assert found["DCGM_FI_DEV_POWER_USAGE"] == [(first, 300.0), (("1", "GPU-2", "NVIDIA Test"), 100.0)]
    assert found["DCGM_FI_DEV_FB_USED"][0] == (first, 5.0)
    assert len(found["DCGM_FI_DEV_FB_USED"]) == 2
    assert found["DCGM_FI_DEV_SM_CLOCK"] == [(first, 1980.0)]
    assert found["DCGM_FI_DEV_GPU_TEMP"] == []


def test_the_dashboard_is_one_and_its_panels_do_not_overlap():
    jsonschema.validate(DASHBOARD, SCHEMA)
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [(x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


def test_the_dashboard_asks_for_metrics_that_exist():
    exported = set(collected(FakeGpu(answers=KNOWN))) | set(re.findall(r"^(\w+)", Latencies().page({}), re.MULTILINE))
    asked = {
        name for panel in DASHBOARD["panels"] for target in panel["targets"] for name in re.findall(r"\b(?:llm|DCGM)_\w+", target["expr"])
    }
    assert asked <= exported
    assert set(collected(FakeGpu(answers=KNOWN))) <= asked


def test_without_a_driver_or_the_library_it_says_so_in_a_sentence():
    ended = subprocess.run([sys.executable, SCRIPT, "--once"], capture_output=True, text=True, timeout=60)
    if ended.returncode == 0:
        pytest.skip("here are both")
    assert re.fullmatch(r"found no .*; expected .*\n", ended.stderr)
