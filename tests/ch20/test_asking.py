"""A search by a language model, asked of a stand-in on this machine: what is sent, what becomes a candidate, and what it may cost."""

import json
import re
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from common.python.project import PROJECT_ROOT
from common.python.report.llm import tokens_of
from tests.ch20.conftest import CHEATS

KEY = "sk-a-secret"
TARGET = "tests/adversaries/cheats:sum"
RIGHT = (CHEATS / "optimized_sum_right.py").read_text()
WRONG = (CHEATS / "optimized_sum_zeros.py").read_text()
ANSWERS = [
    f"Zeros are fast:\n```python\n{WRONG}```",
    "I would tile it.",
    f"First `x`:\n```\nx = 1\n```\nthen all:\n```python\n{RIGHT}```\nDone.",
]


@pytest.fixture(autouse=True)
def only_what_a_test_sets(monkeypatch):
    """No key or endpoint of the machine that the tests run on."""
    for name in ("API_KEY", "BASE_URL", "MODEL"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def stand_in(answers, used=100):
    """A service that gives these answers in turn, then fails; yields its URL and a list of the requests that it got."""
    got, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(200 if left else 500)
            text = left.pop(0) if left else ""
            if self.path == "/v1/messages":
                told = {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": used - 1, "output_tokens": 1}}
            else:
                told = {"choices": [{"message": {"content": text}}], "usage": {"total_tokens": used}}
            body = json.dumps(told).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def start(generator, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["", TARGET, "--device", "cpu", "--iterations", "6", *map(str, words)])
    generator.main()


def verdicts(number, source):
    """What a harness might say of the sources above."""
    return ("PASSED", "", 1.5, 1.4, 1.6, 2000.0) if source.strip() == RIGHT.strip() else ("WRONG_RESULT", "y[0] is 0.0; expected 31.5")


@pytest.fixture
def judged(generator, monkeypatch):
    """Main with a harness that knows these sources, so that no test waits for one."""
    monkeypatch.setattr(generator, "harness_of", lambda _: None)
    monkeypatch.setattr(generator, "beside_hand_written", lambda *_: None)

    def judge_of(pair, out, _):
        return lambda number, source: (pair.written(out / f"attempt_{number:03}", "", source), verdicts(number, source))[1]

    monkeypatch.setattr(generator, "judge_of", judge_of)


@pytest.mark.parametrize(("provider", "path"), [("anthropic", "/v1/messages"), ("openai", "/chat/completions")])
def test_answers_become_candidates_and_what_was_said_of_them_is_told(generator, judged, monkeypatch, tmp_path, provider, path):
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    out = tmp_path / "out"
    with stand_in(ANSWERS) as (url, got):
        start(generator, monkeypatch, "--provider", provider, "--base-url", url, "--model", "m", "--attempts", 4, "--out", out)
    assert {asked_at for asked_at, *_ in got} == {path}
    assert {body["model"] for *_, body in got} == {"m"}
    prompts = [body["messages"][0]["content"] for *_, body in got]
    told = json.loads((out / "attempts.json").read_text())
    assert [(each["status"], each["parent"], each["tokens"]) for each in told["attempts"]] == [
        ("WRONG_RESULT", 0, 100), ("NO_CODE", 0, 100), ("PASSED", 0, 100), ("NO_ANSWER", 3, tokens_of(prompts[3]))
    ]  # fmt: skip
    assert (told["model"], told["tokens"]) == ("m", 300 + tokens_of(prompts[3]))
    assert "- attempt 1, from attempt 0: WRONG_RESULT y[0] is 0.0; expected 31.5" in prompts[1]
    assert "- attempt 2, from attempt 0: NO_CODE found no fenced code block" in prompts[2]
    assert f"The best so far, attempt 3: 1.500x [1.400, 1.600] as fast as the start\n```\n{RIGHT.strip()}" in prompts[3]
    for number, text in enumerate(prompts, start=1):
        assert (out / f"attempt_00{number}/prompt.md").read_text() == text
        assert told["attempts"][number - 1]["prompt"] == f"attempt_00{number}/prompt.md"
    assert (out / "attempt_002/answer.md").read_text() == ANSWERS[1]
    assert (out / told["attempts"][2]["source"]).read_text() == RIGHT
    assert all(each["seconds"] >= 0 for each in told["attempts"])
    assert not any(KEY in path.read_text() for path in out.rglob("*") if path.is_file())


def test_what_would_be_sent_can_be_looked_at_first(generator, judged, monkeypatch, tmp_path, capsys):
    with stand_in(ANSWERS) as (url, got):
        start(generator, monkeypatch, "--provider", "openai", "--base-url", url, "--dry-run", "--out", tmp_path / "out")
        looked = capsys.readouterr()
        assert (got, (tmp_path / "out").exists()) == ([], False)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        start(generator, monkeypatch, "--provider", "openai", "--base-url", url, "--attempts", 3, "--out", tmp_path / "out")
    assert looked.out.strip() == got[0][2]["messages"][0]["content"].strip()
    assert re.fullmatch(r"about \d+ tokens; nobody was asked\n", looked.err)
    for part in ("workload_sum.py", "reference=lambda x: x.sum(dim=1)", "baseline_sum.py", "torch.sum(x, dim=1, out=y)"):
        assert part in looked.out
    assert "Shared with the start" not in looked.out  # shared_sum.cuh is of other sides


def test_all_that_a_source_includes_is_told(generator, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", "ch20:ai_kernel_generator", "--dry-run"])
    generator.main()
    told = capsys.readouterr().out
    assert "Shared with the start: shared_add_norm.cuh" in told
    assert "shared_skinny.py" not in told


def test_a_search_ends_before_it_would_spend_more_than_its_tokens(generator, judged, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    pair = generator.Pair(CHEATS, "sum", ".py")
    first = tokens_of(generator.prompt(pair, generator.START, pair.source(), []))
    words = ("--provider", "openai", "--attempts", 9, "--out", tmp_path / "out", "--tokens", 2 * first + 800)
    with stand_in(ANSWERS * 3, used=first + 400) as (url, got), pytest.raises(SystemExit, match="no candidate of 1 was accepted"):
        start(generator, monkeypatch, *words, "--base-url", url)
    ((*_, body),) = got
    assert body["max_completion_tokens"] == first + 800  # what is left then, and less than a whole answer
    assert f"{first + 400} of {2 * first + 800} tokens are spent, and the next prompt does not fit" in capsys.readouterr().out


def test_a_service_that_does_not_answer_twice_ends_the_search(generator, judged, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with stand_in([]) as (url, got), pytest.raises(SystemExit, match="no candidate of 2 was accepted"):
        start(generator, monkeypatch, "--provider", "openai", "--base-url", url, "--attempts", 9, "--out", tmp_path / "out")
    assert len(got) == 2


def test_without_a_key_nobody_is_asked(generator, judged, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="--provider anthropic: found no ANTHROPIC_API_KEY in the environment; expected the key"):
        start(generator, monkeypatch, "--provider", "anthropic", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("no code", None),
        ("```\na\n", None),
        ("```cpp\na\n```", "a\n"),
        ("````\n```\na\n```\n````", "```\na\n```\n"),
        ("```\na\n```\n\n```cuda\na\nb\n```", "a\nb\n"),
    ],
)
def test_the_longest_fenced_block_is_the_source(generator, answer, code):
    assert sys.modules["shared_prompt"].code_of(answer) == code


@pytest.mark.slow
def test_the_harness_itself_judges_what_a_model_says(generator, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert (PROJECT_ROOT / "tests/adversaries/cheats/baseline_sum.py").is_file()
    with stand_in(ANSWERS) as (url, got):
        start(generator, monkeypatch, "--provider", "anthropic", "--base-url", url, "--attempts", 3, "--out", tmp_path / "out")
    told = json.loads((tmp_path / "out/attempts.json").read_text())
    assert [attempt["status"] for attempt in told["attempts"]] == ["WRONG_RESULT", "NO_CODE", "PASSED"]
    assert told["attempts"][2]["time_ns"] > 0
    assert "best: attempt 3" in capsys.readouterr().out
    assert "is 0.0" in got[1][2]["messages"][0]["content"]
