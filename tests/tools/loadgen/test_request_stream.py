"""Traces as JSONL, and their replay against a small server on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.python.pairs.traces import Planned
from tools.loadgen.request_stream import Endpoint, main, read_trace, replay, trace_text

WORKLOAD = Path(__file__).parents[2] / "serving/toy/workload_toy.py"
TRACE = (Planned(0.0, (1, 2, 3), 4), Planned(0.05, (4,), 1), Planned(0.1, (5, 6), 2))
SLO = ["--slo-ttft-ms", "1000", "--slo-tpot-ms", "1000"]


class Completions(BaseHTTPRequestHandler):
    """Streams a chunk a token; a server whose `short` is set leaves one out, one whose `broken` is set answers 500."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        if self.server.broken:
            self.send_error(500, "no model")
            return
        self.send_response(200)
        self.end_headers()
        for number in range(asked["max_tokens"] - self.server.short):
            self.wfile.write(b"data: " + json.dumps({"choices": [{"text": f" {number}"}]}).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\ndata: [DONE]\n\n')

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Completions) as started:
        started.asked, started.short, started.broken = [], 0, False
        started.url = f"http://127.0.0.1:{started.server_port}/v1/completions"
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(trace_text(TRACE))
    return path


def test_a_trace_is_read_as_it_was_written(written):
    assert read_trace(written) == TRACE
    assert written.read_text().count("\n") == len(TRACE)


def test_the_same_seed_draws_the_same_trace(tmp_path, capsys):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        assert main(["draw", str(WORKLOAD), "--shape", "cpu", "--kwargs", "per_s=50", "--seed", seed, "--out", str(path)]) == 0
    assert paths[0].read_text() == paths[1].read_text() != paths[2].read_text()
    trace = read_trace(paths[0])
    assert len(trace) == 16
    assert trace[-1].due_s > 0
    assert "16 requests" in capsys.readouterr().out


def test_requests_are_sent_when_they_are_due(server):
    requests = replay(TRACE, Endpoint(server.url, "toy"))
    assert [len(request.tokens_us) for request in requests] == [4, 1, 2]
    assert [request.due_us for request in requests] == [0, 50_000, 100_000]
    assert all(request.tokens_us[0] >= request.due_us for request in requests)
    asked = {tuple(each["prompt"]): each for each in server.asked}
    assert asked[1, 2, 3]["max_tokens"] == 4
    assert (asked[4,]["model"], asked[4,]["stream"], asked[4,]["temperature"]) == ("toy", True, 0.0)


def test_a_replay_prints_the_figures_of_a_row(server, written, capsys):
    assert main(["replay", str(written), "--url", server.url, *SLO]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {"ttft_ms.p50", "tpot_ms.p95", "output_tokens_per_s", "goodput", "queue_depth.mean"}
    assert main(["replay", str(written), "--url", server.url, *SLO, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["figures"]["goodput"] == 1.0
    assert len(found["requests"]) == len(TRACE)


WRONG = {
    "too few chunks": ({"short": 1}, "chunks of an answer of"),
    "an error": ({"broken": True}, "found status 500"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_server_that_answers_wrongly_is_told(wrong, server, written, capsys):
    changes, message = WRONG[wrong]
    vars(server).update(changes)
    assert main(["replay", str(written), "--url", server.url, *SLO]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"), [("", "found no request; expected one a line"), ("{}\n", "trace.jsonl:1: found no request"), ("x", ":1: found no")]
)
def test_a_file_that_is_no_trace_is_told(text, message, tmp_path, capsys):
    (tmp_path / "trace.jsonl").write_text(text)
    assert main(["replay", str(tmp_path / "trace.jsonl"), "--url", "http://127.0.0.1:9", *SLO]) == 1
    assert message in capsys.readouterr().err


BAD_DRAWS = {
    "a load without a saturation": (["--kwargs", "arrival_poisson=0.8"], "expected --saturation-per-s"),
    "a shape that is none": (["--shape", "huge"], "--shape huge: workload_toy.py has none; expected one of default, cpu"),
    "an entry that is none": (["--kwargs", "batch=3"], "--kwargs batch=3: workload_toy.py has no such shape entry"),
}


@pytest.mark.parametrize("bad", BAD_DRAWS)
def test_what_cannot_be_drawn_is_told(bad, tmp_path, capsys):
    words, message = BAD_DRAWS[bad]
    assert main(["draw", str(WORKLOAD), *words, "--out", str(tmp_path / "trace.jsonl")]) == 1
    assert message in capsys.readouterr().err


def test_an_address_that_is_none_is_told(written, capsys):
    assert main(["replay", str(written), "--url", "localhost:80", *SLO]) == 1
    assert "found no http or https address" in capsys.readouterr().err
