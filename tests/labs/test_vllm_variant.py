"""The decode step of labs/ultimate_moe_inference by vLLM: what is asked of it, what its times come to, and SKIPPED without it."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from common.python.child.sides.loader import load_workload
from common.python.project import PROJECT_ROOT
from labs.ultimate_moe_inference.vllm_variant import decode

WORKLOAD = PROJECT_ROOT / "labs/ultimate_moe_inference/workload_ultimate_inference.py"
PREFILL_S, STEP_S = 0.5, 0.001


class Engine:
    """Stands in for vLLM's: it answers at a pace of its own, its first call more slowly, and keeps what it was asked."""

    def __init__(self, clock, **options):
        self.clock, self.options, self.asked = clock, options, []

    def generate(self, prompts, sampling, *, use_tqdm):
        assert not use_tqdm
        self.clock.now += (0 if self.asked else 30) + PREFILL_S + STEP_S * (sampling.max_tokens - 1)
        self.asked.append((prompts, sampling))


@pytest.fixture
def vllm(monkeypatch):
    """A module vllm whose calls move the clock; its engine appears in `engines`."""
    clock, module = SimpleNamespace(now=0.0), ModuleType("vllm")
    module.engines, module.SamplingParams = [], SimpleNamespace
    module.LLM = lambda **options: module.engines.append(Engine(clock, **options)) or module.engines[-1]
    module.__spec__ = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(decode, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    return module


def test_a_step_is_what_more_tokens_take(vllm, capsys):
    decode.main(["--steps", "10"])
    assert "vllm: 1000.0 µs per step, 8000 tokens per second" in capsys.readouterr().out


def test_it_is_the_labs_step(vllm):
    decode.main([])
    shape = load_workload(WORKLOAD).time_at
    (engine,) = vllm.engines
    assert engine.options["hf_overrides"]["num_hidden_layers"] == shape["layers"] == len(engine.options["hf_overrides"]["layer_types"])
    assert engine.options["load_format"] == "dummy"
    for prompts, sampling in engine.asked:
        assert [len(prompt["prompt_token_ids"]) for prompt in prompts] == [shape["context"]] * shape["sequences"]
        assert len({tuple(prompt["prompt_token_ids"]) for prompt in prompts}) == shape["sequences"]  # none is another's cached prefix
        assert sampling.ignore_eos
        assert engine.options["max_model_len"] >= shape["context"] + sampling.max_tokens


def test_without_vllm_it_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(decode.importlib.util, "find_spec", lambda _name: None)
    decode.main([])
    assert capsys.readouterr().out.startswith("SKIPPED: found no module vllm")


def test_a_wrong_number_names_its_flag(capsys):
    with pytest.raises(SystemExit):
        decode.main(["--steps", "0"])
    assert "--steps: found '0'; expected a whole number of at least 1" in capsys.readouterr().err
