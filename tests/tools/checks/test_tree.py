"""Each house rule finds the violation planted in a tree made for it, at its line, and this project's own tree breaks none."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.checks import tree

PROJECT = Path(__file__).resolve().parents[3]

IDEA = '"""One idea."""\n'
CUDA_IDEA = "// One idea.\n"


def findings(root, files):
    """What the rules say of a git checkout with just these files."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    return tree.findings_in(root)


def found(root, path, text):
    """The lines of `path` that break a rule, each with the rule's name."""
    return [(finding.line, finding.rule) for finding in findings(root, {path: text}) if finding.path == path]


def lines(count, of="x = 1"):
    return IDEA + f"{of}\n" * (count - 1)


VIOLATIONS = {
    "a long module": ("tools/a.py", lines(601), 601, "budget"),
    "a long header": ("common/cuda/a.cuh", CUDA_IDEA + "int x;\n" * 600, 601, "budget"),
    "a long Python example": ("ch01/optimized_a.py", lines(61), 61, "budget"),
    "a long CUDA example": ("ch07/baseline_a.cu", CUDA_IDEA + "int x;\n" * 120, 121, "budget"),
    "a long lab example": ("labs/moe/optimized_a.py", lines(251), 251, "budget"),
    "a long tensor-core kernel": ("ch10/optimized_a.cu", CUDA_IDEA + "wgmma_fence();\n" * 250, 251, "budget"),
    "a kernel that is long and only speaks of tensor cores": ("ch10/optimized_a.cu", CUDA_IDEA + "int x;  // wgmma\n" * 120, 121, "budget"),
    "a long function": ("tools/a.py", IDEA + "def f():\n" + "    x = 1\n" * 50, 2, "budget"),
    "seven parameters": ("common/python/gate/statistics.py", IDEA + "def f(a, b, /, c, *d, e, f, **g): ...\n", 2, "budget"),
    "seven parameters of a method": ("tools/a.py", IDEA + "class A:\n    def f(self, a, b, c, d, e, f, g): ...\n", 3, "budget"),
    "a long line": ("ch07/baseline_a.cu", CUDA_IDEA + "//" + "x" * 139 + "\n", 2, "line length"),
    "a new entry at the top": ("scripts/a.py", IDEA, 1, "top level"),
    "a chapter too many": ("ch21/a.py", IDEA, 1, "top level"),
    "no idea": ("tools/a.py", "import os\n", 1, "idea"),
    "an empty file": ("common/__init__.py", "", 1, "idea"),
    "a directive for an idea": ("ch07/optimized_a.cu", "// proves: launches == 1\n", 1, "idea"),
    "a bare except": ("tools/a.py", IDEA + "try:\n    f()\nexcept:\n    pass\n", 4, "broad except"),
    "except Exception": ("ch01/workload_a.py", IDEA + "try:\n    f()\nexcept Exception as e:\n    pass\n", 4, "broad except"),
    "except BaseException among others": ("tests/a.py", IDEA + "try:\n    f()\nexcept (E, BaseException):\n    pass\n", 4, "broad except"),
    "suppress(Exception)": ("tools/a.py", IDEA + "with contextlib.suppress(Exception):\n    f()\n", 2, "broad except"),
    "a getattr default": ("common/python/gate/statistics.py", IDEA + 'x = getattr(y, "z", None)\n', 2, "getattr default"),
    "os.environ": ("tools/a.py", IDEA + 'x = os.environ["A"]\n', 2, "environment"),
    "os.getenv": ("common/python/gate/statistics.py", IDEA + 'x = os.getenv("A")\n', 2, "environment"),
    "environ imported": ("tools/a.py", IDEA + "from os import environ\n", 2, "environment"),
    "sys.path.insert": ("ch01/demo.py", IDEA + "sys." + "path.insert(0, here)\n", 2, "sys.path"),
    "sys.path assigned": ("tests/a.py", IDEA + "sys." + "path[:0] = [here]\n", 2, "sys.path"),
    "sys.path added to": ("tools/a.py", IDEA + "sys." + "path += [here]\n", 2, "sys.path"),
    "utils": ("common/python/string_utils.py", IDEA, 1, "names"),
    "a folder of utils": ("tools/utils/a.py", IDEA, 1, "names"),
    "Python that does not parse": ("tools/a.py", IDEA + "def f(:\n", 2, "syntax"),
    "a private path": ("README.md", "run /" + "root/x\n", 1, "private"),
    "a registry's host": ("pyproject.toml", 'index = "https://py' + 'pi.org/simple"\n', 1, "private"),
}


@pytest.mark.parametrize(("path", "text", "line", "rule"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_named_at_its_line(tmp_path, path, text, line, rule):
    assert (line, rule) in found(tmp_path, path, text)


NOT_IN_AN_EXAMPLE = [
    'if __name__ == "__main__": main()',
    "import argparse",
    "start = time.perf_counter()",
    "torch.manual_seed(0)",
    "event = torch.cuda.Event(enable_timing=True)",
    "assert torch.allclose(x, y)",
    "torch.testing.assert_close(x, y)",
    "ms = triton.testing.do_bench(f)",
]


@pytest.mark.parametrize("line", NOT_IN_AN_EXAMPLE)
@pytest.mark.parametrize("prefix", ["workload", "baseline", "optimized", "library", "shared"])
def test_an_example_holds_no_harness(tmp_path, prefix, line):
    assert found(tmp_path, f"labs/moe/{prefix}_a.py", IDEA + line + "\n") == [(2, "no harness")]


@pytest.mark.parametrize("line", ["int main() {", "cudaEventElapsedTime(&ms, a, b);", "cudaEventCreate(&a);"])
def test_a_cuda_example_holds_no_harness(tmp_path, line):
    assert found(tmp_path, "ch07/optimized_a.cu", CUDA_IDEA + line + "\n") == [(2, "no harness")]


def test_a_demo_may_have_a_main_and_an_example_may_order_streams_and_speak_of_time(tmp_path):
    files = {
        "ch01/performance_basics.py": IDEA + 'if __name__ == "__main__":\n    argparse.ArgumentParser()\n',
        "ch11/optimized_a.cu": CUDA_IDEA + "cudaEventCreateWithFlags(&e, cudaEventDisableTiming);\n// not cudaEventElapsedTime\n",
        "ch11/optimized_b.py": '"""Events order, unlike time.perf_counter()."""\nevent = torch.cuda.Event()  # not torch.allclose()\n',
    }
    assert findings(tmp_path, files) == []


@pytest.mark.parametrize(
    "line",
    [
        "volatile float x;",
        "__nanosleep(100);",
        "cudaDeviceSynchronize();",
        "cudaStreamSynchronize(stream);",
        "kernel<<<1, 1>>>(x);",
        "kernel<<<8, 256, 0, stream>>>(x);",
        "dim3 grid(1);",
        "cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToHost, stream);",
    ],
)
def test_a_baseline_is_honest(tmp_path, line):
    assert found(tmp_path, "ch07/baseline_a.cu", CUDA_IDEA + line + "\n") == [(2, "honest baseline")]


def test_a_python_baseline_is_honest(tmp_path):
    lines = ("torch.cuda.synchronize()", "time.sleep(1)", "total += loss.item()", "x.cpu()", 'x.to("cpu")')
    expected = [(number, "honest baseline") for number, _ in enumerate(lines, start=2)]
    assert found(tmp_path, "ch07/baseline_a.py", IDEA + "\n".join(lines) + "\n") == expected


def test_a_grid_that_follows_from_the_problem_is_honest(tmp_path):
    text = CUDA_IDEA + "kernel<<<ceil_div(n, 256), 256, 0, stream>>>(x);\ndim3 grid(tiles, 4);\nkernel<<<132, 256>>>(x);\n"
    assert found(tmp_path, "ch07/baseline_a.cu", text) == []


def test_a_sync_that_is_the_idea_is_announced_and_inline_assembly_is_volatile(tmp_path):
    sync = CUDA_IDEA + "// allows: sync\ncudaStreamSynchronize(stream);\n"
    assembly = CUDA_IDEA + 'asm volatile("mov.u32 %0, %%clock;" : "=r"(x));\n'
    assert findings(tmp_path, {"ch11/baseline_a.cu": sync, "ch11/baseline_b.cu": assembly}) == []


@pytest.mark.parametrize(
    ("technique", "first", "but"),
    [
        ("f = torch.compile(g)", 14, (13,)),
        ("import triton", 14, (4, 10, 12, 13)),
        ("graph = torch.cuda.CUDAGraph()", 12, ()),
        ("side = torch.cuda.Stream()", 11, (4,)),
        ("this_cluster()", 10, ()),
        ("CUtensorMap", 7, ()),
        ("STAGES = 4", 10, ()),
        ("make_pipeline(state)", 10, ()),
    ],
)
def test_a_chapter_shows_no_technique_of_a_later_one(tmp_path, technique, first, but):
    files = {f"ch{chapter:02}/optimized_a.py": IDEA + technique + "\n" for chapter in range(1, 21)}
    files["labs/moe/optimized_a.py"] = IDEA + technique + "\n"
    early = [f"ch{chapter:02}/optimized_a.py" for chapter in range(1, first) if chapter not in but]
    assert [(finding.path, finding.line, finding.rule) for finding in findings(tmp_path, files)] == [
        (path, 2, "chapter scope") for path in early
    ]


def test_a_library_may_use_any_technique(tmp_path):
    files = {"ch07/library_a.py": IDEA + "f = torch.compile(g)\n", "ch07/optimized_a.py": IDEA + "f = torch.compile(g)\n"}
    assert [finding.path for finding in findings(tmp_path, files) if finding.rule == "chapter scope"] == ["ch07/optimized_a.py"]


def test_a_script_that_measures_a_link_may_use_two_streams(tmp_path):
    files = {f"ch{chapter:02}/links.py": IDEA + "torch.cuda.Stream(0)\n" for chapter in (1, 2, 3)}
    assert [finding.path for finding in findings(tmp_path, files) if finding.rule == "chapter scope"] == ["ch01/links.py", "ch03/links.py"]


BROAD = IDEA + "try:\n    f()\nexcept BaseException:\n    pass\n"

ALLOWED = {
    "isolation catches whatever comes": ("common/python/child/server.py", BROAD),
    "so may a cheat": ("tests/adversaries/baseline_a.py", BROAD),
    "environment reads the environment": ("common/python/machine/description.py", IDEA + "x = os.environ\n"),
    "loader edits sys.path": ("common/python/child/sides/loader.py", IDEA + "sys." + "path.insert(0, x)\n"),
    "sys.path may be read": ("tools/a.py", IDEA + "x = sys.path[0] == y\n"),
    "a tensor-core kernel is longer": ("ch10/optimized_a.cu", CUDA_IDEA + "wgmma_fence();\n" * 249),
    "six parameters and self": ("tools/a.py", IDEA + "class A:\n    def f(self, a, b, c, d, e, f): ...\n"),
    "getattr without a default": ("tools/a.py", IDEA + "x = getattr(y, z)\n"),
    "documentation has hosts": ("README.md", "https://docs.nvidia.com/cuda/ and artifacts/work/x and ~/work/x\n"),
    "a dotfile at the top": (".github/a.py", IDEA),
    "a binary file is not read": ("tests/data/a.bin", "/" + "root/x\0"),
}


@pytest.mark.parametrize(("path", "text"), ALLOWED.values(), ids=ALLOWED)
def test_what_the_rules_allow(tmp_path, path, text):
    assert found(tmp_path, path, text) == []


def test_the_command_says_what_it_found_and_fails(tmp_path):
    findings(tmp_path, {"tools/a.py": "x = 1\n"})
    ran = subprocess.run([sys.executable, "-m", "tools.checks.tree", tmp_path], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert ran.stdout.startswith("tools/a.py:1: idea: found `x = 1`; expected a first line")
    assert ran.stdout.endswith("house rules: 1 findings\n")


def test_this_tree_keeps_the_rules():
    broken = tree.findings_in(PROJECT)
    assert not broken, "\n".join(map(str, broken))
