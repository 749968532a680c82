"""hardware_info.py: nodes come from PCI addresses, what is not told is unknown, and table, JSON and drawing say the same."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pynvml
import pytest

from common.python.child.sides.loader import import_file
from tests.ch02.machines import sysfs_at, two_gpus
from tests.support.fake_nvml import FakeNvml
from tests.support.teeth import ROOT

TOOL = ROOT / "ch02" / "hardware_info.py"
tool = import_file(TOOL)


def found(folder, nvml=None, allowed=range(8), **sysfs):
    return tool.topology(two_gpus() if nvml is None else nvml, sysfs_at(folder, **sysfs), allowed)


def test_the_node_of_a_gpu_comes_from_its_address_and_not_from_its_index(tmp_path):
    assert [gpu["numa_node"] for gpu in found(tmp_path)["gpus"]] == [1, 0]


def test_only_cores_that_this_process_may_use_are_allowed(tmp_path):
    seen = found(tmp_path, allowed={2, 3, 5})
    assert [(node["cpus"], node["allowed_cpus"]) for node in seen["nodes"]] == [("0-3", "2-3"), ("4-7", "5")]
    assert [gpu["near_allowed_cpus"] for gpu in seen["gpus"]] == ["5", "2-3"]


def test_a_node_that_the_kernel_does_not_know_is_unknown(tmp_path):
    seen = found(tmp_path, near=(-1, -1))
    assert [gpu["numa_node"] for gpu in seen["gpus"]] == [-1, -1]
    assert sum("NUMA node unknown, near cores unknown" in line for line in tool.lines(seen)) == 2


def test_nvlinks_are_counted_by_what_is_at_their_other_end(tmp_path):
    assert [gpu["nvlinks"] for gpu in found(tmp_path)["gpus"]] == [
        [{"to": "GPU 1", "links": 18, "version": 4}],
        [{"to": "GPU 0", "links": 18, "version": 4}],
    ]


def test_an_nvswitch_is_one_end_whatever_its_address(tmp_path):
    seen = found(tmp_path, two_gpus(kind=pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH))
    assert [gpu["nvlinks"][0]["to"] for gpu in seen["gpus"]] == ["NVSwitch", "NVSwitch"]


def test_a_pair_of_gpus_says_over_what_one_reads_the_others_memory(tmp_path):
    (pair,) = found(tmp_path)["pairs"]
    assert pair == {"gpus": [0, 1], "common_ancestor": "the system", "peer_reads": True, "peer_over": ["NVLink", "PCIe"]}


def test_a_pair_without_peer_access_has_none(tmp_path):
    (pair,) = found(tmp_path, two_gpus(peers=pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED))["pairs"]
    assert (pair["peer_reads"], pair["peer_over"]) == (False, [])


def test_c2c_and_mig_are_told_where_nvml_tells_them(tmp_path):
    seen = found(tmp_path, two_gpus(C2cModeInfoV=SimpleNamespace(isC2cEnabled=1), MigMode=[1, 1]))
    assert [(gpu["c2c"], gpu["mig"]) for gpu in seen["gpus"]] == [(True, True)] * 2
    assert "NVLink-C2C" in tool.drawn(seen)


def test_what_a_virtual_machine_does_not_tell_is_unknown_and_no_error(tmp_path):
    silent = FakeNvml(*(type(gpu)(gpu.uuid) for gpu in two_gpus().gpus))
    seen = found(tmp_path, silent)
    assert [(gpu["c2c"], gpu["mig"], gpu["numa_node"], gpu["nvlinks"]) for gpu in seen["gpus"]] == [(None, None, -1, [])] * 2
    assert "generation unknown of unknown, unknown lanes" in "\n".join(tool.lines(seen))
    ET.fromstring(tool.drawn(seen))


def test_without_a_driver_there_are_nodes_and_a_note(tmp_path):
    seen = found(tmp_path, FakeNvml())
    assert (len(seen["nodes"]), seen["gpus"]) == (2, [])
    assert seen["notes"][0].startswith("no GPU is seen: ")


@pytest.mark.parametrize("kind", [pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH])
def test_the_drawing_has_a_box_a_node_and_a_gpu_and_names_the_links(tmp_path, kind):
    seen = found(tmp_path, two_gpus(kind=kind))
    switches = 1 if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH else 0
    drawing = ET.fromstring(tool.drawn(seen))
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in drawing.iter(f"{space}text")]
    assert len(list(drawing.iter(f"{space}rect"))) == 4 + switches
    assert texts.count("PCIe 5 x16") == 2
    assert texts.count("18 NVLinks") == (2 if switches else 1)


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", [0, 1, 2, 3, 8]), ("", []), ("5\n", [5])])
def test_lists_of_the_kernel_are_read_and_written(text, cpus):
    assert tool.cpus_of(text) == cpus
    assert tool.list_of(cpus) == text.strip()


def test_it_runs_here_and_prints_json_and_draws(tmp_path):
    drawing = tmp_path / "machine.svg"
    command = [sys.executable, TOOL, "--json", "--svg", drawing]
    printed = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert printed.keys() == {"architecture", "nodes", "gpus", "pairs", "notes"}
    ET.parse(drawing)


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        tool.main(["--svg", str(tmp_path / "none" / "a.svg")])
    assert f"found no folder {tmp_path / 'none'}; expected one that exists" in capsys.readouterr().err
