"""Advice is asked of a stand-in on this machine: what is sent, and what is made of each answer; no failure costs more than a line."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from common.python.machine.roofline import with_shares
from common.python.report.html import html
from common.python.report.llm import PROMPT_FILE, NoAnswer, analyse, ask, prompt, service_of, tokens_of
from common.python.report.run_folder import RunFolder, load
from common.python.report.tables import markdown
from common.python.results import SideProfile
from common.python.settings import Settings
from tests.support.factories import a_proof, a_row, a_run, a_side, a_timing
from tests.support.html_page import Page
from tests.support.profiles import profiled_row
from tests.support.synthetic_ceilings import synthetic_ceilings

KEY = "sk-a-secret"
MOST = 60_000
ADVICE = "Tile it.\n<script>alert(1)</script> 99x *faster*"
ANSWERS = {
    "/v1/messages": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ADVICE}]},
    "/chat/completions": {"choices": [{"message": {"role": "assistant", "content": ADVICE}}]},
}


@pytest.fixture(autouse=True)
def only_what_a_test_sets(monkeypatch):
    """No key, endpoint or proxy of the machine that the tests run on."""
    for service in ("ANTHROPIC", "OPENAI"):
        for name in ("API_KEY", "BASE_URL", "MODEL"):
            monkeypatch.delenv(f"{service}_{name}", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def stand_in(status=200, body=None, hold=None, location=""):
    """A service that answers as told; yields its URL and a list of the requests that it got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["content-length"])
            got.append((self.path, self.headers, json.loads(self.rfile.read(length))))
            if hold:
                hold.wait(10)
                return
            told = (json.dumps(ANSWERS.get(self.path, {})) if body is None else body).encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        if hold:
            hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


def anthropic(url, **variables):
    return service_of({"API_KEY": KEY, "BASE_URL": url} | variables, {})


@pytest.fixture
def row(tmp_path):
    """A row whose sources are in a root, with a profile, shares and proofs."""
    (tmp_path / "ch07").mkdir()
    (tmp_path / "ch07/baseline_transpose.cu").write_text("int tile;\nint naive;\n")
    (tmp_path / "ch07/optimized_transpose.cu").write_text("int tile;\nint tiled; // ```\n")
    files = {"baseline": "b.cu", "optimized": "o.cu"}
    timing = with_shares(a_timing(), {"dram_read": 8e7}, synthetic_ceilings(), files)
    return profiled_row(idea="through shared memory", timings={"default": timing}, proofs=(a_proof(),))


@pytest.fixture
def run(tmp_path):
    return a_run(Settings(root=tmp_path))


# --- what is asked


def test_the_prompt_holds_what_was_measured_and_the_sources(row, run):
    text = prompt(run, [row], MOST)
    assert "NVIDIA H200 (driver 580.1)" in text
    assert "## ch07:transpose: PASSED\nIdea: through shared memory" in text
    assert "- optimized: 36.7 µs [36.3, 37.1], 2.31x [2.28, 2.34] as fast as the baseline, 54.5 % [54.0, 55.0] of dram" in text
    assert "optimized is memory-bound" in text
    assert "- proven: `UTCHMMA present` in optimized" in text
    assert "- counters of a step of baseline: gpu__time_duration.sum 84.7 µs, dram__bytes.sum 256 MiB" in text
    assert "- counters that moved most: l1tex__data_bank_conflicts_pipe_lsu.sum 33,000,000 → 0" in text
    assert "### baseline: ch07/baseline_transpose.cu\n```\nint tile;\nint naive;\n```" in text
    assert "\n````\n--- ch07/baseline_transpose.cu\n+++ ch07/optimized_transpose.cu\n@@" in text
    assert "\n-int naive;\n+int tiled; // ```\n````" in text


def test_a_source_outside_the_root_or_gone_is_not_sent(row, run, tmp_path):
    (tmp_path / "ch07/optimized_transpose.cu").unlink()
    sides = row.sides | {"baseline": a_side("baseline", file="../secret.cu")}
    (tmp_path.parent / "secret.cu").write_text("int secret;")
    text = prompt(run, [row.model_copy(update={"sides": sides})], MOST)
    assert "int secret" not in text
    assert "int tiled" not in text


def test_a_prompt_that_would_be_too_long_names_what_it_leaves_out(row, run, tmp_path):
    (tmp_path / "ch07/baseline_transpose.cu").write_text("x" * 300_000)
    text = prompt(run, [row, a_row("ch01:small", sides={"baseline": a_side(file="gone.cu")}, timings={})], MOST)
    assert tokens_of(text) < MOST
    assert "## ch01:small" in text
    assert text.endswith("Left out, as they would make this too long: ch07:transpose\n")


def test_without_a_key_the_prompt_is_left_and_a_line_says_so(row, run, tmp_path):
    found = analyse(run, [row], tmp_path, most_tokens=MOST, send=True)
    assert found.advice == {}
    (note,) = found.notes
    assert note.startswith(
        "--llm-analysis: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set, so nobody was asked; the prompt, of about "
    )
    assert note.endswith(str(tmp_path / PROMPT_FILE))
    assert (tmp_path / PROMPT_FILE).read_text() == prompt(run, [row], MOST)


def test_what_would_be_sent_can_be_looked_at_first(row, run, tmp_path, monkeypatch):
    with stand_in() as (url, got):
        nobody = analyse(run, [row], tmp_path, most_tokens=MOST, send=False)
        for name, text in (("API_KEY", KEY), ("BASE_URL", url), ("MODEL", "some-model")):
            monkeypatch.setenv(f"OPENAI_{name}", text)
        looked = analyse(run, [row], tmp_path, most_tokens=MOST, send=False)
        seen = (tmp_path / PROMPT_FILE).read_text()
        assert got == []
        analyse(run, [row], tmp_path, most_tokens=MOST, send=True)
    ((_, _, body),) = got
    assert body["messages"][0]["content"] == seen
    assert body["max_completion_tokens"] == 4096
    where = f"the prompt, of about {-(-len(seen.encode()) // 3)} tokens, is in {tmp_path / PROMPT_FILE}"
    assert nobody.notes == (f"--llm-analysis: nobody was asked, and nobody would be, as no key is set; {where}",)
    assert looked.notes == (f"--llm-analysis: nobody was asked, and some-model by OpenAI's interface would be asked; {where}",)
    assert (nobody.advice, looked.advice) == ({}, {})


def test_no_more_than_the_limit_is_sent_and_nothing_where_no_row_fits(row, run, tmp_path, monkeypatch):
    rows = [row.model_copy(update={"target": f"ch07:transpose_{number}"}) for number in range(30)]
    text = prompt(run, rows, 3000)
    assert 2000 < tokens_of(text) <= 3000
    assert 1 <= text.count("\n\n## ch07:transpose_") < 30
    assert text.endswith(" more\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    (note,) = analyse(run, rows, tmp_path, most_tokens=100, send=True).notes
    assert note.startswith("--llm-analysis: found no row that fits into 100 tokens, so nobody was asked; the prompt, of ")


# --- who is asked, and what is made of the answer


@pytest.mark.parametrize(
    ("service", "path", "header", "value"),
    [("ANTHROPIC", "/v1/messages", "x-api-key", KEY), ("OPENAI", "/chat/completions", "authorization", f"Bearer {KEY}")],
)
def test_an_answer_is_advice_by_the_model_s_name(row, run, tmp_path, monkeypatch, service, path, header, value):
    with stand_in() as (url, got):
        for name, text in (("API_KEY", KEY), ("BASE_URL", f"{url}/"), ("MODEL", "some-model")):
            monkeypatch.setenv(f"{service}_{name}", text)
        found = analyse(run, [row], tmp_path, most_tokens=MOST, send=True)
    assert found.advice == {"some-model": ADVICE}
    ((asked_at, headers, body),) = got
    assert (asked_at, headers[header], body["model"]) == (path, value, "some-model")
    assert body["messages"] == [{"role": "user", "content": (tmp_path / PROMPT_FILE).read_text()}]
    assert KEY not in found.notes[0] + (tmp_path / PROMPT_FILE).read_text()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"status": 401, "body": f'{{"error": "no such key {KEY}"}}'}, "found HTTP status 401; expected 200"),
        ({"status": 500}, "found HTTP status 500; expected 200"),
        ({"body": "[" * 200_000}, "found an answer that cannot be read (RecursionError); expected JSON with a text"),
        ({"body": "<html>"}, "found an answer that cannot be read (JSONDecodeError); expected JSON with a text"),
        ({"body": '{"content": 3}'}, "found an answer that cannot be read (TypeError); expected JSON with a text"),
        ({"body": '{"error": {}}'}, "found an answer that cannot be read (KeyError); expected JSON with a text"),
        ({"body": '{"content": []}'}, "found an answer without a text; expected one"),
        ({"status": 302, "location": "http://127.0.0.1:1/v1/messages"}, "found HTTP status 302; expected 200"),
    ],
)
def test_what_is_no_answer_is_a_line_and_no_advice(row, run, tmp_path, monkeypatch, answers, expected):
    with stand_in(**answers) as (url, got):
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        found = analyse(run, [row], tmp_path, most_tokens=MOST, send=True)
    assert len(got) == 1
    assert found.advice == {}
    (note,) = found.notes
    assert expected in note
    assert KEY not in note
    assert (tmp_path / PROMPT_FILE).exists()


def test_silence_ends_at_the_limit():
    with stand_in(hold=threading.Event()) as (url, _), pytest.raises(NoAnswer, match=r"found no answer in 0\.2 s; expected one"):
        ask(anthropic(url), "?", limit_s=0.2)


@pytest.mark.parametrize(
    ("url", "key", "expected"),
    [
        ("http://127.0.0.1:1", KEY, "found no way to it"),
        ("file:///etc/passwd?", KEY, "found a base URL of another scheme; expected http:// or https://"),
        ("http://[", KEY, "found a base URL or a key that HTTP cannot carry"),
        ("http://127.0.0.1:1", "sk-a\nsecret", "found a base URL or a key that HTTP cannot carry"),
    ],
)
def test_a_service_that_cannot_be_asked_is_a_line_without_the_key(url, key, expected):
    with pytest.raises(NoAnswer, match=expected) as caught:
        ask(anthropic(url, API_KEY=key), "?")
    assert "secret" not in str(caught.value)


def test_half_a_character_in_an_answer_can_still_be_written():
    with stand_in(body='{"content": [{"type": "text", "text": "a\\ud800b"}]}') as (url, _):
        assert ask(anthropic(url), "?").text == "a?b"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ('{"input_tokens": 100, "output_tokens": 23}', 123),
        ('{"input_tokens": 100}', 3),  # an estimate: a prompt of 6 bytes and an answer of 2
        ('{"input_tokens": "many", "output_tokens": 1}', 3),
        ('{"input_tokens": 1e999, "output_tokens": 1}', 3),
    ],
)
def test_tokens_are_counted_as_the_service_does(usage, tokens):
    with stand_in(body=f'{{"content": [{{"type": "text", "text": "ok"}}], "usage": {usage}}}') as (url, _):
        assert ask(anthropic(url), "prompt").tokens == tokens


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_an_answer_may_be_limited(name):
    given = {"API_KEY": KEY}
    service = service_of(given, {}) if name == "anthropic" else service_of({}, given)
    assert [value for key, value in service.limited(99).body.items() if key != "model"] == [99]


def test_a_key_is_never_shown_with_its_service():
    assert KEY not in repr(anthropic("http://127.0.0.1:1"))


def test_anthropic_goes_first_and_an_empty_key_is_none():
    both = {"API_KEY": KEY}
    assert service_of(both, both).url == "https://api.anthropic.com/v1/messages"
    assert service_of({"API_KEY": " "}, both).url == "https://api.openai.com/v1/chat/completions"
    assert service_of({}, {}) is None


# --- how it is shown


def test_advice_is_kept_with_the_run_and_shown_as_no_measurement(tmp_path, row):
    run = a_run(Settings(root=tmp_path), advice={"some-model": ADVICE}, notes=("--llm-analysis: advice",))
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), run.run_id)
    folder.write_pair(row)
    folder.finish(run)
    kept, rows = load(folder.path)
    assert kept.advice == {"some-model": ADVICE}
    page = Page(html(kept, rows))
    assert "Advice of a language model, not a measurement" in page.texts("h2")
    assert page.texts("blockquote") == [" ".join(ADVICE.split())]
    assert len(page.all("script")) == 1
    text = markdown(kept, rows)
    assert "- --llm-analysis: advice\n" in text
    assert "## Advice of a language model, not a measurement\n\nsome-model said this" in text
    assert text.endswith("\n> Tile it.\n> \\<script>alert(1)\\</script> 99x \\*faster\\*\n")


def test_advice_changes_no_figure(row, run):
    plain = html(run, [row])
    advised = html(run.model_copy(update={"advice": {"some-model": "It is 99x faster."}}), [row])
    start, end = advised.index('<section class="advice">'), advised.index("</main>")
    assert advised[:start] + advised[end:] == plain


def test_a_row_without_timing_or_profile_is_told_too(run):
    text = prompt(
        run, [a_row(status="SKIPPED", reason="needs tcgen05", timings={}, sides={"baseline": a_side(profile=SideProfile())})], MOST
    )
    assert "## ch07:transpose: SKIPPED\nReason: needs tcgen05" in text
