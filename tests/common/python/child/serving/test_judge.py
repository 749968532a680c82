"""The judgement of answers: right ones pass, wrong contexts do not, and a workload that cannot tell them apart is found out."""

import random

import pytest
import torch

from common import Serving, Slo, Traffic
from common.python.child.serving.judge import STALE_TOKENS, judge_trace, swapped, with_stale_block
from common.python.errors import BenchmarkError
from common.python.processes import messages
from common.python.processes.messages import AnsweredRequest

VOCABULARY, HIDDEN = 32, 16
COLUMNS = [1, 7, 30]


def weights():
    generator = torch.Generator().manual_seed(3)
    mix, _ = torch.linalg.qr(torch.randn(HIDDEN, HIDDEN, generator=generator))
    return {
        "mix": mix,
        "embedding": torch.randn(VOCABULARY, HIDDEN, generator=generator),
        "head": torch.randn(HIDDEN, VOCABULARY, generator=generator),
    }


def with_memory(weights, tokens, first):
    """Logits that every token of a context moves."""
    state, rows = torch.zeros(HIDDEN), []
    for token in tokens:
        state = state @ weights["mix"] + weights["embedding"][token]
        rows.append((state / state.norm()) @ weights["head"])
    return torch.stack(rows[first:])


def without_memory(weights, tokens, first):
    """Logits of the last token alone."""
    return weights["embedding"][tokens[first:]] @ weights["head"]


def an_answer(logits, prompt, count=4, number=0):
    """What a side that is right sends."""
    tokens, probed = [], []
    for _ in range(count):
        row = logits(weights(), torch.tensor([*prompt, *tokens]), len(prompt) + len(tokens) - 1)[0]
        tokens.append(int(row.argmax()))
        probed.append(row[COLUMNS].tolist())
    return AnsweredRequest(id=number, prompt=prompt, tokens=tokens, columns=COLUMNS, probed=probed)


def judged(answers, logits=with_memory, teeth=False, atol=1e-3):
    traffic = Traffic(count=1, prompt_tokens=(1, 1), output_tokens=(1, 1))
    serving = Serving(lambda: traffic, logits, VOCABULARY, atol, Slo(1.0, 1.0))
    request = messages.JudgeTrace(
        workload="w", device="cpu", folder="", side="optimized", shape={}, prepare_seed=1, answers=answers, teeth=teeth
    )
    return judge_trace(serving, request, {"weights": weights()}, "digest", random.Random(5))


def prompts(count):
    rng = random.Random(11)
    return [[rng.randrange(VOCABULARY) for _ in range(rng.randint(20, 40))] for _ in range(count)]


def test_a_right_answer_is_right():
    found = judged([an_answer(with_memory, prompt, number=i) for i, prompt in enumerate(prompts(3))])
    assert (found.mismatch, found.digest, found.tried) == ("", "digest", 0)
    assert found.outputs["logits"].max_abs < 1e-5
    assert found.outputs["tokens"].mismatched == 0


CHANGES = {
    "another token": {"tokens": [0, 0, 0, 0]},
    "no token": {"tokens": [VOCABULARY, 0, 0, 0]},
    "a logit that is off": {"probed": [[0.0, 0.0, 0.0]] * 4},
    "a logit that is no number": {"probed": [[float("nan")] * 3] * 4},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_answer_is_told_with_its_place(change):
    answer = an_answer(with_memory, prompts(1)[0], number=6)
    found = judged([answer.model_copy(update=CHANGES[change])])
    assert found.mismatch.startswith("request 6, token ")
    expected = "one of 0 to 31" if change == "no token" else "at most 0.001 of each, in standard deviations of the row"
    assert f"expected {expected}" in found.mismatch


def test_a_model_that_reads_its_context_has_teeth():
    found = judged([an_answer(with_memory, prompt) for prompt in prompts(16)], teeth=True)
    assert (found.tried, found.tried_stale, found.refused_swapped, found.refused_stale) == (128, 128, 128, 128)


def test_a_context_that_is_the_requests_own_is_no_wrong_one():
    """Requests that share all but their last token, as where many ask the same."""
    first, second = prompts(2)
    answers = [an_answer(with_memory, prompt) for prompt in (first, [*first[:-1], 3], second)]
    found = judged(answers, teeth=True)
    assert (found.tried, found.refused_swapped) == (4, 4)
    alone = judged(answers[:2], teeth=True)
    assert (alone.tried, alone.refused_stale) == (0, alone.tried_stale)


def test_a_model_of_its_last_token_alone_has_none():
    found = judged([an_answer(without_memory, prompt) for prompt in prompts(16)], without_memory, teeth=True)
    assert found.mismatch == ""
    assert (found.refused_swapped, found.refused_stale) == (0, 0)


def test_a_bound_that_is_too_wide_has_none():
    found = judged([an_answer(with_memory, prompt) for prompt in prompts(16)], teeth=True, atol=20.0)
    assert (found.refused_swapped, found.refused_stale) == (0, 0)


def test_a_stale_block_is_sixteen_tokens_in_a_row_and_not_the_last():
    rng = random.Random(2)
    for _ in range(50):
        prompt, other = [0] * 40, list(range(1, 31))
        found = with_stale_block(prompt, other, VOCABULARY, rng)
        changed = [i for i, token in enumerate(found) if token]
        assert changed == list(range(changed[0], changed[0] + STALE_TOKENS))
        assert found[-1] == 0
        assert len(found) == 40
        assert found[changed[0] + 1] == found[changed[0]] + 1
    assert with_stale_block([3], [5], VOCABULARY, rng) == [4]
    assert with_stale_block([3] * 20, [3] * 20, VOCABULARY, rng) != [3] * 20


def test_a_swapped_context_keeps_the_token_that_a_side_is_given():
    assert swapped([1, 2, 3], [7, 8]) == [7, 3]


@pytest.mark.parametrize(
    "logits", [lambda tokens: torch.zeros(1, 2), lambda tokens, first: torch.zeros(len(tokens) - first, VOCABULARY).double()]
)
def test_logits_that_are_none_are_refused(logits):
    with pytest.raises(BenchmarkError, match="serving: logits returned"):
        judged([an_answer(with_memory, prompts(1)[0])], logits)
