"""The files that start training on several nodes name a script, flags and settings that exist."""

import re
import shlex
import subprocess

import pytest
import yaml
from torch.distributed.run import get_args_parser

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
presets = import_file(CHAPTER / "shared_nccl_presets.py")
training = import_file(CHAPTER / "training_8xb200_pipeline.py")
SLURM = {"job-name", "nodes", "ntasks-per-node", "gpus-per-node", "cpus-per-task", "exclusive", "time", "output"}


@pytest.fixture(scope="module")
def script():
    return (CHAPTER / "multi_node.sbatch").read_text()


@pytest.fixture(scope="module")
def kubernetes():
    service, job = yaml.safe_load_all((CHAPTER / "multi_node.yaml").read_text())
    return service, job


def torchrun(words):
    """What torchrun reads of a command line; the script must be there."""
    found = get_args_parser().parse_args(words)
    assert (PROJECT_ROOT / found.training_script).is_file()
    return found


def test_bash_reads_the_slurm_script():
    subprocess.run(["bash", "-n", str(CHAPTER / "multi_node.sbatch")], check=True, timeout=20)


def test_slurm_directives_come_first_and_exist(script):
    lines = script.splitlines()
    directives = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    assert max(directives) < first_command  # Slurm ignores what stands behind the first command
    assert {re.match(r"#SBATCH --([\w-]+)", lines[number])[1] for number in directives} == SLURM


def test_slurm_starts_one_torchrun_a_node(script):
    assert "#SBATCH --ntasks-per-node=1" in script
    for name, value in {
        "$SLURM_NNODES": "2",
        "$SLURM_GPUS_ON_NODE": "8",
        "$SLURM_JOB_ID": "7",
        "$HEAD_NODE": "a",
        '"$@"': "--tp-size 2",
    }.items():
        script = script.replace(name, value)
    command = script[script.index("srun ") :].replace("\\\n", " ")
    found = torchrun(shlex.split(command)[3:])
    assert (found.nnodes, found.nproc_per_node, found.rdzv_backend, found.rdzv_endpoint) == ("2", "8", "c10d", "a:29500")
    assert training.options("").parse_args(found.training_script_args).tp_size == 2


def test_slurm_presets_exist(script):
    assert re.search(r"NCCL_PRESET:-([\w-]+)", script)[1] in presets.ENVIRONMENTS
    assert (PROJECT_ROOT / re.search(r"python3 (\S+) --preset", script)[1]).is_file()


def test_kubernetes_starts_a_pod_a_node(kubernetes):
    _, job = kubernetes
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    found = torchrun(container["command"][1:])
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == int(found.nnodes)
    assert container["resources"]["limits"]["nvidia.com/gpu"] == int(found.nproc_per_node)
    assert training.options("").parse_args(found.training_script_args).tp_size == 2


def test_kubernetes_pods_meet_at_the_first(kubernetes):
    service, job = kubernetes
    pod, labels = job["spec"]["template"]["spec"], job["spec"]["template"]["metadata"]["labels"]
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    endpoint = next(word for word in pod["containers"][0]["command"] if word.startswith("--rdzv-endpoint="))
    assert endpoint == f"--rdzv-endpoint={job['metadata']['name']}-0.{name}:{port}"
    assert pod["subdomain"] == name
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= labels.items()
    assert pod["restartPolicy"] == "Never"


def test_kubernetes_sets_a_preset(kubernetes):
    (container,) = kubernetes[1]["spec"]["template"]["spec"]["containers"]
    assert {entry["name"]: entry["value"] for entry in container["env"]} == presets.ENVIRONMENTS["8xb200"]
