"""The chapter's scripts run on a CPU at a small size, check what they compute, and refuse bad input in one sentence."""

import subprocess
import sys

import pytest

from common.python.project import PROJECT_ROOT
from tests.support.probes import needs_nvcc

pytestmark = pytest.mark.slow


def ran(script, *arguments):
    command = [sys.executable, PROJECT_ROOT / "ch18" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_the_decoder_says_what_the_model_says():
    done = ran("run_vllm_decoder.py", "--max-tokens", "12", "--slots", "2", "--budget", "5")
    assert done.returncode == 0, done.stderr
    assert "36 tokens in " in done.stdout
    assert "; 0 are not the model's" in done.stdout
    assert done.stdout.count("--- prompt") == 3


def test_a_decoder_that_says_something_else_is_seen():
    code = "import sys, torch, run_vllm_decoder as demo\n"
    code += "plain = demo.Client.emit\n"
    code += "demo.Client.emit = lambda self, requests, tokens, logits: plain(self, requests, tokens ^ 1, logits)\n"
    code += "sys.argv = ['x', '--max-tokens', '4']\nsys.exit(demo.main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT_ROOT / "ch18", timeout=200, check=False)
    assert done.returncode == 1, done.stderr
    assert "; 0 are not" not in done.stdout


def test_masks_of_flex_attention_are_those_of_dense_attention():
    done = ran("flex_attention_native.py", "--tokens", "300", "--window", "40", "--heads", "2", "--dim", "16")
    assert done.returncode == 0, done.stderr
    kept = {line.split()[0]: float(line.split()[1].rstrip("%")) for line in done.stdout.splitlines()[2:]}
    assert set(kept) == {"causal", "window", "document", "bias"}
    assert kept["window"] < kept["causal"] == kept["bias"]  # of 3 x 3 blocks


def test_a_smaller_window_keeps_fewer_blocks():
    done = ran("flex_attention_enhanced.py", "--tokens", "512", "--window", "512", "--window", "100", "--documents", "1")
    assert done.returncode == 0, done.stderr
    wide, narrow = (float(line.split()[1].rstrip("%")) for line in done.stdout.splitlines()[2:])
    assert wide == 62.5  # 10 of 4 x 4 blocks
    assert narrow == 43.8  # the diagonal's 4, and the 3 below it


def test_a_cache_that_fills_up_is_right_at_every_length():
    done = ran("flexdecoding_example.py", "--capacity", "256", "--length", "1", "--length", "256")
    assert done.returncode == 0, done.stderr
    assert [int(line.split()[0]) for line in done.stdout.splitlines()[2:]] == [1, 256]
    assert all(float(line.split()[-1]) <= 1 for line in done.stdout.splitlines()[2:])


def test_layers_share_a_block_mask():
    done = ran("flex_attention_large_model.py", "--layers", "2", "--tokens", "300")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 1e-5


def test_statistics_of_nvfp4_are_of_every_matrix(tmp_path):
    done = ran("nvfp4_statistics.py", "--model", "byte_lm_draft", "--svg", tmp_path / "codes.svg")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: [float(word) for word in line.replace("%", "").split()[1:]] for line in done.stdout.splitlines()[2:-1]}
    assert len(rows) == 1 + 2 * 6  # the embedding; queries, keys, values, outputs and two of the feed-forward in each layer
    for scale, *codes, mean, worst in rows.values():
        assert scale > 0
        assert sum(codes) == pytest.approx(100, abs=0.4)  # eight rounded shares
        assert codes[-1] >= 6.2  # a block of 16 has its largest weight
        assert 0 < mean < worst < 18
    assert (tmp_path / "codes.svg").read_text().count("<rect") == 1 + 8 * len(rows)


def test_statistics_of_scales_that_are_wrong_are_seen():
    code = "import sys, nvfp4_statistics as demo\n"
    code += "plain = demo.restored\n"
    code += "demo.restored = lambda q: plain(q._replace(factor=1.2 * q.factor))\n"
    code += "sys.argv = ['x', '--model', 'byte_lm_draft']\nsys.exit(demo.main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT_ROOT / "ch18", timeout=200, check=False)
    assert done.returncode == 1, done.stderr
    assert "found errors above 0.18" in done.stderr


@needs_nvcc
def test_flashmla_kernel_finds_a_nan_before_right_values(tmp_path):
    """Its comparison is the host's, so no GPU is needed."""
    source = tmp_path / "compared.cu"
    source.write_text(
        f"""#define main demo
#include "{PROJECT_ROOT}/ch18/flashmla_kernel.cu"
#undef main
int main() {{
    std::vector<__nv_bfloat16> q(WIDTH, __float2bfloat16(1)), latent(WIDTH, __float2bfloat16(2));
    std::vector<float> out(RANK, 2);
    const double right = error_of(q.data(), latent.data(), out.data(), 1, 1);
    out[7] = NAN;
    return right == 0 && std::isnan(error_of(q.data(), latent.data(), out.data(), 1, 1)) ? 0 : 1;
}}"""
    )
    made = subprocess.run(
        ["nvcc", "-std=c++17", "-arch=sm_90a", source, "-o", tmp_path / "compared"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert subprocess.run([tmp_path / "compared"], check=False).returncode == 0


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_90a", "sm_100", "sm_120"])
def test_flashmla_kernel_builds_and_checks_itself(architecture, tmp_path):
    command = ["make", "-C", PROJECT_ROOT / "ch18", "flashmla_kernel", f"ARCH={architecture}", f"BUILD={tmp_path}"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([tmp_path / "flashmla_kernel"], capture_output=True, text=True, timeout=100, check=False)
    said = done.stdout if done.returncode == 0 else done.stderr
    assert said.startswith("flashmla_kernel: 4 sequences") if done.returncode == 0 else "flashmla_kernel.cu:" in said, said


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("run_vllm_decoder.py", ["--max-tokens", "0"], "found --max-tokens 0; expected at least 1"),
        ("run_vllm_decoder.py", ["--engine", "vllm"], "expected"),
        ("flex_attention_enhanced.py", ["--window", "0"], "found a size below 1"),
        ("flex_attention_large_model.py", ["--heads", "3"], "found --heads 3; expected a multiple of --kv-heads, 2"),
        ("flexdecoding_example.py", ["--length", "600"], "found --length 600; expected at most the capacity, 512"),
        ("flex_attention_native.py", ["--dim", "24"], "found --dim 24; expected a power of two of at least 16"),
    ],
)
def test_bad_input_is_refused(script, arguments, said):
    done = ran(script, *arguments)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
