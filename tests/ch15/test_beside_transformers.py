"""The demo serves one trace by both engines, finds the same answers, and refuses lengths and tokens that are not right."""

import json

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

pytest.importorskip("transformers")

SMALL = ["--requests", "4", "--slots", "2", "--longest", "6", "--mean", "3", "--prompt", "12", "--rounds", "2"]


@pytest.fixture
def demo(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    torch.set_num_threads(1)
    return import_file(PROJECT_ROOT / "ch15/beside_transformers.py")


def changed_answers(demo, monkeypatch, change):
    """transformers' engine, but `change` is made to what it answers."""
    honest = demo.Theirs.answers
    monkeypatch.setattr(demo.Theirs, "answers", lambda self, trace: change(honest(self, trace)))


def test_both_engines_answer_alike(demo, tmp_path, capsys):
    out = tmp_path / "report.json"
    assert demo.main([*SMALL, "--json", str(out)]) == 0, capsys.readouterr().err
    report = json.loads(out.read_text())
    assert [(row["engine"], row["at_once"]) for row in report["engines"]] == [
        ("ours", 2),
        ("ours", 4),
        ("transformers", 2),
        ("transformers", 4),
    ]
    assert all(row["tokens_per_s"] > 0 and not row["wrong_tokens"] for row in report["engines"])
    assert [row["seed"] for row in report["rounds"]] == [1, 2]
    assert [(row["ours_at_once"], row["at_once"]) for row in report["compared"]] == [(2, 2), (2, 4), (4, 4)]
    assert all(row["same_answers"] == 1.0 and row["low"] < row["ratio"] < row["high"] for row in report["compared"])
    said = capsys.readouterr().out
    assert f"{report['compared'][0]['ratio']:.3f}" in said
    assert "paged|" in said


def test_a_token_too_few_is_refused(demo, monkeypatch, capsys):
    changed_answers(demo, monkeypatch, lambda answers: [answers[0], answers[1][:-1], *answers[2:]])
    assert demo.main(SMALL) == 1
    captured = capsys.readouterr()
    assert "transformers, 4 at a time: found " in captured.err or "transformers, 2 at a time: found " in captured.err
    assert "tokens for request 1; expected " in captured.err
    assert not captured.out


def test_a_token_that_the_model_would_not_say_is_seen(demo, monkeypatch, capsys):
    changed_answers(demo, monkeypatch, lambda answers: [*answers[:3], [(token + 128) % 256 for token in answers[3]]])
    assert demo.main(SMALL) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("ours ", "transformers "))]
    assert [int(words[-1]) > 0 for words in lines] == [False, False, True, True]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--rounds", "1"], "found --rounds 1; expected at least 2"),
        (["--graphs"], "a GPU for --graphs"),
        (["--json", "/nowhere/here.json"], "found no folder /nowhere"),
    ],
)
def test_flags_of_no_use_are_refused_before_anything_is_built(demo, capsys, flags, sentence):
    with pytest.raises(SystemExit) as ended:
        demo.main(flags)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]


def test_a_mean_beyond_the_longest_and_an_unknown_attention_are_refused(demo, capsys):
    assert demo.main([*SMALL, "--mean", "9"]) == 1
    assert "output_mean=9; expected one between" in capsys.readouterr().err
    assert demo.main([*SMALL, "--attention", "paged|none"]) == 1
    assert "found --attention paged|none; expected one" in capsys.readouterr().err.splitlines()[-1]
