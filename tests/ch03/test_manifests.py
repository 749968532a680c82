"""The container's recipe and the pods: right for the schema of Kubernetes, and what their comments promise is in them."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch03"
RECIPE = CHAPTER / "docker_gpu_optimized.dockerfile"
PODS = ["kubernetes_mig_pod.yaml", "kubernetes_topology_pod.yaml"]


def instructions():
    """The name and the rest of each instruction, continued lines joined."""
    text = re.sub(r"^#.*\n", "", RECIPE.read_text(), flags=re.MULTILINE)
    return [tuple(line.split(maxsplit=1)) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]


def written(name):
    """The manifest in a file, and the pod's specification in it."""
    manifest = yaml.safe_load((CHAPTER / name).read_text())
    return manifest, manifest["spec"]["template"]["spec"] if "template" in manifest["spec"] else manifest["spec"]


@pytest.mark.parametrize("name", PODS)
def test_a_manifest_keeps_the_schema_of_kubernetes(name):
    validator = pytest.importorskip("kubernetes_validate")
    manifest, pod = written(name)
    validator.validate(manifest, "1.34", strict=True)
    pod["containers"][0]["resource"] = {}
    with pytest.raises(validator.ValidationError, match="'resource' was unexpected"):
        validator.validate(manifest, "1.34", strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_guaranteed_whole_cpus_and_runs_as_the_image_s_user(name):
    _, pod = written(name)
    (user,) = [match[1] for _, rest in instructions() if (match := re.search(r"useradd .*--uid (\d+)", rest))]
    assert pod["securityContext"]["runAsUser"] == int(user)
    for container in pod["containers"]:
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert int(container["resources"]["limits"]["cpu"]) > 0  # "1500m" would be no whole number, and share CPUs
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_a_pod_asks_for_one_gpu_or_one_slice():
    asked = {name: [key for key in written(name)[1]["containers"][0]["resources"]["limits"] if "nvidia" in key] for name in PODS}
    assert asked == {PODS[0]: ["nvidia.com/mig-2g.20gb"], PODS[1]: ["nvidia.com/gpu"]}


def test_a_stateful_set_selects_its_own_pods():
    manifest, _ = written("kubernetes_mig_pod.yaml")
    assert manifest["spec"]["selector"]["matchLabels"] == manifest["spec"]["template"]["metadata"]["labels"]


def test_the_recipe_pins_its_base_copies_what_is_there_and_ends_as_its_user():
    found = instructions()
    names = [name for name, _ in found]
    assert set(names) <= {"ARG", "FROM", "ENV", "SHELL", "RUN", "USER", "WORKDIR", "COPY", "ENTRYPOINT", "CMD"}
    assert dict(found)["ARG"].startswith("CUDA=13.")
    assert [rest for name, rest in found if name == "FROM"] == ["nvidia/cuda:${CUDA}-devel-ubuntu24.04"]
    sources = [word for name, rest in found if name == "COPY" for word in rest.split()[1:-1]]
    assert all((ROOT / source).exists() for source in sources)
    assert [rest for name, rest in found if name == "USER"] == ["bench"]
    assert names.index("USER") < names.index("COPY")
    ignored = (CHAPTER / f"{RECIPE.name}.dockerignore").read_text().split()
    assert {".git", ".venv", "artifacts"} <= set(ignored)


@pytest.mark.parametrize("script", [rest for name, rest in instructions() if name == "RUN"])
def test_what_the_recipe_runs_is_bash(script):
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0


def test_hadolint_has_nothing_to_say():
    if (program := shutil.which("hadolint")) is None:
        pytest.skip("no hadolint")
    ended = subprocess.run([program, RECIPE], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")
