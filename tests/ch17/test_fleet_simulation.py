"""The simulated fleet runs the pairs' own routers, says that it is a simulation wherever it says anything, and refuses bad input."""

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from common.python.project import PROJECT_ROOT

pytestmark = pytest.mark.slow

SMALL = ["--gpus", "2", "8", "--requests", "12", "--traces", "1"]


def run(*arguments, code=""):
    program = code or f"import sys, fleet_simulation as simulation; sys.exit(simulation.main({list(map(str, arguments))}))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PROJECT_ROOT / "ch17", timeout=120)


def test_table_json_and_drawing_say_that_they_are_simulated(tmp_path):
    files = tmp_path / "figures.json", tmp_path / "figures.svg"
    done = run(*SMALL, "--json", files[0], "--svg", files[1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED, not measured")
    assert "arithmetic, not measured" in done.stdout
    facts = json.loads(files[0].read_text())
    assert (facts["simulated"], facts["what"]) == (True, "SIMULATED, not measured")
    assert "arithmetic, not measured" in facts["source"]
    assert [(row["pair"], row["gpus"]) for row in facts["rows"]] == [
        (pair, gpus) for pair in ("routing_static", "dynamic_routing") for gpus in (2, 8)
    ]
    assert all(row[side]["ttft_ms.p95"] > 0 for row in facts["rows"] for side in ("baseline", "optimized"))
    drawing = ET.fromstring(files[1].read_text())
    assert len(drawing.findall("{*}polyline")) == 4
    assert "SIMULATED, not measured" in "".join(drawing.itertext())
    assert run(*SMALL, "--json", tmp_path / "again.json").returncode == 0
    assert json.loads((tmp_path / "again.json").read_text()) == facts


def test_shapes_are_the_pairs_and_their_engines_also_share_one_gpu(tmp_path):
    file = tmp_path / "figures.json"
    done = run("--gpus", "2", "--traces", "1", "--shapes", "--json", file)
    assert done.returncode == 0, done.stderr
    facts = json.loads(file.read_text())
    assert facts["shapes"]["dynamic_routing"] == {"prompt": 512, "answer": 64, "slots": 2, "requests": 8}
    assert [(row["pair"], row["engines"], row["gpus"]) for row in facts["rows"]] == [
        (pair, 2, gpus) for pair in ("routing_static", "dynamic_routing") for gpus in (2, 1)
    ]
    alone, shared = facts["rows"][:2]
    assert shared["requests_per_s"] < alone["requests_per_s"]
    assert shared["optimized"]["ttft_ms.p50"] > alone["optimized"]["ttft_ms.p50"]


def test_the_routers_are_the_pairs_and_a_half_is_judged_by_its_mean():
    code = """
import fleet_simulation as simulation
from common.serving.engines import Load
import baseline_dynamic_routing, baseline_routing_static, optimized_dynamic_routing, optimized_routing_static
(static, by_cost), (in_turn, least) = (routers for _, *routers in simulation.PAIRS.values())
assert in_turn is baseline_dynamic_routing.InTurn and least is optimized_dynamic_routing.by_config
assert static()._choose is baseline_routing_static.choose and type(by_cost()._choose) is optimized_routing_static.ByCost
loads = [Load() for _ in range(4)]
route = static()
assert [route(256, loads), route(256, loads), route(257, loads), route(257, loads), route(1, loads)] == [0, 1, 2, 3, 0]
loads[2:] = [Load(1, 385, 0), Load(0, 0, 0)]  # a mean of 256.5 tokens of work: 128 for a request
assert by_cost()(300, loads) == 0
loads[2] = Load(1, 383, 0)
assert by_cost()(300, loads) == 2
full = [Load(10, 10, 0), Load(9, 9000, 0)]
assert least()(100, full) == 1  # queue_max is dynamo_config.yaml's
"""
    done = run(code=code)
    assert done.returncode == 0, done.stderr


def test_service_times_of_this_machine_are_measured_and_simulated_with(tmp_path):
    file = tmp_path / "here.json"
    assert run("--measure", file).returncode == 0
    times = json.loads(file.read_text())["here"]
    assert min(times["step_s"], times["sequence_s"]) >= 0 < times["prompt_token_s"]  # on a busy machine the least of them is lost in noise
    assert times["step_s"] + times["sequence_s"] > 0
    assert times["source"].startswith("measured on")
    done = run(*SMALL, "--file", file, "--times", "here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED")


BAD = {
    "a fleet of one": (["--gpus", "1"], "--gpus: found 1; expected 2 to 1024 GPUs"),
    "no slot": (["--slots", "0"], "--slots: found 0; expected at least 1"),
    "a short prompt": (["--prompt", "8"], "--prompt: found 8; expected at least 32"),
    "unknown times": (["--times", "b200"], "found no b200 with step_s, prompt_token_s"),
    "no file": (["--file", "nowhere.json"], "nowhere.json: cannot be read; expected service times as JSON"),
}


def test_a_step_that_takes_no_time_is_refused(tmp_path):
    file = tmp_path / "none.json"
    file.write_text(json.dumps({"here": {"step_s": 0.0, "prompt_token_s": 1e-5, "sequence_s": 0.0, "message_s": 5e-4, "source": "a test"}}))
    done = run(*SMALL, "--file", file, "--times", "here")
    assert done.returncode != 0
    assert "found step_s + sequence_s of 0.0 for here; expected a step to take time" in done.stderr


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_one_sentence(bad):
    arguments, message = BAD[bad]
    done = run(*arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
