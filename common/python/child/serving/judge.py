"""The judgement of a trace: what was emitted, against the workload's logits of one request alone, teacher-forced on its tokens.

An argmax alone has no teeth: a model may choose one token whatever it is told. So probed logits are compared too, and before a row is
timed the referee finds out whether it would refuse answers from a wrong context.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from common.python.errors import BenchmarkError
from common.python.pairs.serving import Serving
from common.python.pairs.workload import call_by_name
from common.python.processes import messages
from common.python.processes.messages import AnsweredRequest
from common.python.results import OutputError

STALE_TOKENS = 16  # a block of a paged cache
WRONG_CONTEXTS = 128  # of each kind so many are tried, over all requests, so that the share that is refused is known

Rows = Callable[[Sequence[int], int], torch.Tensor]


@dataclass(frozen=True)
class _Off:
    """How far an answer is off, in deviations of each row: what its tokens are below the largest, and its worst probed logit."""

    tokens: torch.Tensor
    logits: torch.Tensor

    def wrong(self, atol: float) -> torch.Tensor:
        """Which of its positions are; NaN is."""
        return ~((self.tokens <= atol) & (self.logits <= atol))


def judge_trace(
    serving: Serving, request: messages.JudgeTrace, inputs: Mapping[str, Any], digest: str, rng: random.Random
) -> messages.TraceJudged:
    """Hold each answer to the logits that `inputs` give at the request's shape."""
    device = torch.device(request.device)
    rows = rows_of(serving, request, inputs, device)
    tokens, logits, mismatch = [], [], ""
    tried_swapped = refused_swapped = refused_stale = 0
    blocks = -(-WRONG_CONTEXTS // max(1, len(request.answers))) if request.teeth else 0
    prompts = [answer.prompt for answer in request.answers]
    for position, answer in enumerate(request.answers):
        if unknown := _unknown(answer, serving.vocabulary):  # of which the workload's logits say nothing
            mismatch = mismatch or unknown
            tokens.append(torch.full((1,), torch.inf, device=device))
            continue
        right = rows([*answer.prompt, *answer.tokens[:-1]], len(answer.prompt) - 1)
        off = _off(right, torch.tensor(answer.tokens, device=device), torch.tensor(answer.probed, device=device), answer.columns)
        tokens.append(off.tokens)
        logits.append(off.logits)
        mismatch = mismatch or _mismatch(answer, off, serving.atol)
        others = [other for other in (*prompts[position + 1 :], *prompts[:position]) if other[:-1] != answer.prompt[:-1]]
        for other in others[:blocks]:
            tried_swapped += 1
            refused_swapped += _is_refused(serving, rows, answer, right, swapped(answer.prompt, other))
        for turn in range(blocks):
            other = others[turn % len(others)] if others else answer.prompt
            stale = with_stale_block(answer.prompt, other, serving.vocabulary, rng)
            refused_stale += _is_refused(serving, rows, answer, right, stale)
    return messages.TraceJudged(
        nonce=request.nonce,
        digest=digest,
        outputs={name: _error(parts, serving.atol) for name, parts in {"tokens": tokens, "logits": logits}.items() if parts},
        mismatch=mismatch,
        tried=tried_swapped,
        tried_stale=blocks * len(request.answers),
        refused_swapped=refused_swapped,
        refused_stale=refused_stale,
    )


def rows_of(serving: Serving, request: messages.JudgeTrace, inputs: Mapping[str, Any], device: torch.device) -> Rows:
    """The workload's logits of a request alone, checked for what they must be."""
    function = serving.logits_of(request.side)

    def rows(tokens: Sequence[int], first: int) -> torch.Tensor:
        given = {**request.shape, **inputs, "tokens": torch.tensor(tokens, dtype=torch.int64, device=device), "first": first}
        found: Any = call_by_name(function, given, "serving: logits")
        expected = (len(tokens) - first, serving.vocabulary)
        if not isinstance(found, torch.Tensor) or found.dtype != torch.float32 or tuple(found.shape) != expected:
            what = f"{found.dtype} of shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
            raise BenchmarkError(f"serving: logits returned {what}; expected torch.float32 of shape {expected}")
        return found

    return rows


def _off(right: torch.Tensor, tokens: torch.Tensor, probed: torch.Tensor, columns: Sequence[int]) -> _Off:
    deviation = right.std(dim=-1, correction=0)
    below = (right.amax(-1) - right.gather(-1, tokens[:, None])[:, 0]) / deviation
    gaps = (right[:, list(columns)] - probed).abs() / deviation[:, None]
    return _Off(below, gaps.amax(-1))


def _unknown(answer: AnsweredRequest, vocabulary: int) -> str:
    for position, token in enumerate(answer.tokens):
        if not 0 <= token < vocabulary:
            return f"request {answer.id}, token {position + 1} of {len(answer.tokens)} is {token}; expected one of 0 to {vocabulary - 1}"
    return ""


def _mismatch(answer: AnsweredRequest, off: _Off, atol: float) -> str:
    wrong = off.wrong(atol).nonzero()
    if len(wrong) == 0:
        return ""
    position = int(wrong[0])
    where = f"request {answer.id}, token {position + 1} of {len(answer.tokens)} ({answer.tokens[position]})"
    below, off_by = float(off.tokens[position]), float(off.logits[position])
    found = f"its logit lies {below:.3g} below the largest and a probed logit is off by {off_by:.3g}"
    return f"{where}: {found}; expected at most {atol:g} of each, in standard deviations of the row"


def _is_refused(serving: Serving, rows: Rows, answer: AnsweredRequest, right: torch.Tensor, prompt: Sequence[int]) -> bool:
    """Whether the answer of a model that saw `prompt` instead would be refused, on the same tokens before each."""
    seen = rows([*prompt, *answer.tokens[:-1]], len(prompt) - 1)
    off = _off(right, seen.argmax(-1), seen[:, answer.columns], answer.columns)
    return bool(off.wrong(serving.atol).any())


def swapped(prompt: Sequence[int], other: Sequence[int]) -> list[int]:
    """`other` in place of `prompt`, but for the last token, which a side is given in each step."""
    return [*other[:-1], prompt[-1]]


def with_stale_block(prompt: Sequence[int], other: Sequence[int], vocabulary: int, rng: random.Random) -> list[int]:
    """`prompt` with a block of tokens, not the last, replaced by one of `other`, or by random ones where the two are alike."""
    size = min(STALE_TOKENS, len(prompt) - 1)
    if size == 0:
        return [(prompt[0] + 1) % vocabulary]
    first = rng.randrange(len(prompt) - size)
    start = rng.randrange(max(1, len(other) - size + 1))
    block = list(other[start : start + size])
    if block == list(prompt[first : first + size]) or len(block) < size:
        block = [(token + rng.randrange(1, vocabulary)) % vocabulary for token in prompt[first : first + size]]
    return [*prompt[:first], *block, *prompt[first + size :]]


def _error(parts: Sequence[torch.Tensor], atol: float) -> OutputError:
    """The errors of all positions in deviations; one that is not finite counts as wrong and is told by the mismatch."""
    joined = torch.cat([part.reshape(-1) for part in parts])
    finite = joined[torch.isfinite(joined)]
    wrong = float((~(joined <= atol)).double().mean())
    return OutputError(max_abs=float(finite.max()) if len(finite) else 0.0, max_rel=0.0, mismatched=wrong)
