"""Ceilings are kept a machine at a time, found again, and not used where they no longer hold."""

import json
import re
from pathlib import Path

import pytest

from common.python.errors import BenchmarkError
from common.python.machine import ceilings
from common.python.machine.ceilings import WORK_KEYS, ceilings_path, keep_ceilings, kept_ceilings, machine_key, require_work
from common.python.machine.description import Gpu, Machine
from tests.support.synthetic_ceilings import CEILINGS, a_ceiling, synthetic_ceilings

GPU = Gpu(
    index=0,
    name="a GPU that does not exist",
    uuid="GPU-synthetic",
    capability=(9, 0),
    memory_bytes=1 << 30,
    driver="1.0",
    power_limit_w=700.0,
    sm_clock_max_mhz=2000,
    memory_clock_max_mhz=3000,
)
MACHINE = Machine(
    cpu="Some CPU", architecture="x86_64", cores=2, numa_nodes=1, memory_bytes=1 << 30, kernel="6", python="3.11", gpus=(GPU,)
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(ceilings, "MACHINES", tmp_path / "machines")
    return tmp_path / "machines"


def test_what_is_kept_is_found_again(folder):
    path = keep_ceilings(synthetic_ceilings())

    assert path == folder / "GPU-synthetic.json"
    assert kept_ceilings(MACHINE, "cuda") == (synthetic_ceilings(), "")


def test_a_second_measurement_takes_the_place_of_the_first():
    keep_ceilings(synthetic_ceilings())
    keep_ceilings(synthetic_ceilings(seconds=2.0))

    kept, _ = kept_ceilings(MACHINE, "cuda")
    assert kept.seconds == 2.0


def test_a_cpu_is_known_by_its_model():
    key = machine_key(MACHINE, None)
    other = machine_key(MACHINE.model_copy(update={"cpu": "Another CPU"}), None)
    keep_ceilings(synthetic_ceilings(machine=key, device="cpu"))

    assert key.startswith("cpu-")
    assert key != other
    assert kept_ceilings(MACHINE, "cpu")[0].machine == key


@pytest.mark.parametrize(("device", "name"), [("cuda", "a GPU that does not exist"), ("cpu", "Some CPU")])
def test_where_none_are_kept_it_says_what_to_run(device, name):
    assert kept_ceilings(MACHINE, device) == (
        None,
        f"no ceilings kept for {name}, so no shares of the ceiling: run `benchmark_cli peak`",
    )


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"driver": "2.0"}, "driver 1.0 and not 2.0"),
        ({"power_limit_w": 500.0}, "a power limit (W) of 700.0 and not 500.0"),
        ({"memory_clock_max_mhz": 2600}, "a memory clock of at most (MHz) 3000 and not 2600"),
        ({"sm_clock_max_mhz": None}, "an SM clock of at most (MHz) 2000 and not None"),
    ],
)
def test_ceilings_of_other_days_are_not_used(changed, found):
    keep_ceilings(synthetic_ceilings())
    machine = MACHINE.model_copy(update={"gpus": (GPU.model_copy(update=changed),)})

    kept, why_not = kept_ceilings(machine, "cuda")
    assert kept is None
    assert found in why_not
    assert "run `benchmark_cli peak`" in why_not


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "line 1, column 2"),
        ("{}", "no schema_version"),
        (json.dumps({"schema_version": 99}), "schema version 99; expected at most 1"),
        (synthetic_ceilings().model_dump_json().replace('"bytes/s"', '"bytes"'), "ceilings.0.unit"),
        (synthetic_ceilings().model_dump_json().replace("GPU-synthetic", "GPU-other"), "ceilings of cuda GPU-other; expected those of"),
        (synthetic_ceilings().model_dump_json().replace('"cuda"', '"cpu"'), "ceilings of cpu GPU-synthetic; expected those of cuda"),
    ],
)
def test_a_file_that_is_something_else_is_named_in_one_sentence(folder, content, sentence):
    folder.mkdir()
    ceilings_path("GPU-synthetic").write_text(content)

    with pytest.raises(BenchmarkError) as caught:
        kept_ceilings(MACHINE, "cuda")
    assert str(caught.value).startswith(str(folder / "GPU-synthetic.json"))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_ceiling_of_nothing_cannot_be_written_down():
    with pytest.raises(ValueError, match="a ceiling is positive"):
        a_ceiling("dram_read", 0.0, "bytes/s")


def test_the_synthetic_machine_has_a_ceiling_a_name():
    assert len({ceiling.name for ceiling in CEILINGS}) == len(CEILINGS)


WRONG_WORK = {
    "work gives a list at n; expected a dict of ceilings to amounts": ["dram_read"],
    "work gives fp32='many' at n; expected a finite amount that is not negative": {"fp32": "many"},
    "work gives fp32=True at n; expected a finite amount": {"fp32": True},
    "work gives fp32=inf at n; expected a finite amount": {"fp32": float("inf")},
    "work names 'dram_raed' at n, which is no ceiling; expected dram_read": {"fp32": 1, "dram_raed": 4},
    "work names 'fp23' at n, which is no ceiling; expected fp32": {"fp23": 1},
    "work names 'xyz' at n, which is no ceiling; expected one of dram_read, dram_write, ": {"xyz": 1},
}


@pytest.mark.parametrize(("told", "work"), WRONG_WORK.items())
def test_work_that_no_ceiling_could_be_held_against_is_one_sentence(told, work):
    with pytest.raises(BenchmarkError, match=f"^{re.escape(told)}"):
        require_work(work, " at n")


def test_work_may_name_every_ceiling_that_peak_measures():
    require_work({})
    require_work({**dict.fromkeys(WORK_KEYS, 1.5), "fp32": 0, "peer": 7})
    run = json.loads((Path(__file__).parents[3] / "data/run_h200_slower/run.json").read_text())
    names = {ceiling["name"] for kept in run["ceilings"].values() for ceiling in kept["ceilings"]}
    assert {"dram_read", "bf16", "h2d"} < names <= {*WORK_KEYS}
