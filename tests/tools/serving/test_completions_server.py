"""The server, started on loopback with the tiny model: its answers are the model's, the load generator drives it, bad requests are told."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import psutil
import pytest
import torch

from common.models.decoder import forward
from common.python.pairs.traces import Planned
from common.python.project import PROJECT_ROOT
from tests.support.commands import until
from tools.loadgen.request_stream import Endpoint, main, replay, trace_text
from tools.serving.completions_server import Asked, BadRequest, Model, asked_of, model_named

SERVER = PROJECT_ROOT / "tools/serving/completions_server.py"
TINY = model_named("tiny", 1, 64, torch.device("cpu"))


class Started:
    """A server in a process of its own, with two answers at a time."""

    def __init__(self, *arguments):
        command = [sys.executable, SERVER, "--port", "0", "--slots", "2", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=PROJECT_ROOT)
        line = self.process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), self.process.communicate()
        self.url = line.split()[0]

    def ask(self, method="POST", path="/v1/completions", **fields):
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)) as connection:
            connection.request(method, path, json.dumps(fields) if fields else None)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def complete(self, prompt, count):
        status, told = self.ask(model="tiny", prompt=prompt, max_tokens=count)
        assert status == 200, told
        return told

    def end(self, number):
        self.process.send_signal(number)
        return self.process.communicate(timeout=60), self.process.returncode


@pytest.fixture(scope="module")
def server():
    started = Started("--model", "tiny", "--longest", "64", "--engines", "2")
    yield started
    (_, errors), code = started.end(signal.SIGTERM)
    assert (code, errors) == (0, "")


def greedy(prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(forward(TINY.weights, TINY.config, torch.tensor(tokens))[-1].argmax()))
    return tokens[len(prompt) :]


def test_answers_are_the_models_many_at_a_time(server):
    prompts = [[(7 * start + step) % 97 for step in range(2 + 3 * start)] for start in range(6)]
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda prompt: server.complete(prompt, 5), prompts))
    assert [[int(word) for word in each["choices"][0]["text"].split()] for each in told] == [greedy(prompt, 5) for prompt in prompts]
    assert {each["choices"][0]["finish_reason"] for each in told} == {"length"}
    assert told[1]["usage"] == {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    assert {each["object"] for each in told} == {"text_completion"}
    assert len({each["id"] for each in told}) == 6


def test_a_stream_is_a_chunk_a_token_then_usage_then_done(server):
    asked = {"model": "tiny", "prompt": [3, 1, 4], "max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        connection.request("POST", "/v1/completions", json.dumps(asked))
        response = connection.getresponse()
        assert response.getheader("Content-Type") == "text/event-stream"
        events = [line.removeprefix("data: ") for line in response.read().decode().split("\n\n") if line]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    assert [int(chunk["choices"][0]["text"]) for chunk in chunks[:-1]] == greedy([3, 1, 4], 4)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, None, "length"]
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 7)
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_the_load_generator_drives_it(server, tmp_path, capsys):
    trace = tuple(Planned(0.02 * number, tuple(range(1, 5 + number)), 3 + number % 4) for number in range(8))
    requests = replay(trace, Endpoint(server.url, "tiny"))
    assert [len(request.tokens_us) for request in requests] == [planned.output_tokens for planned in trace]
    path = tmp_path / "trace.jsonl"
    path.write_text(trace_text(trace))
    slo = ["--slo-ttft-ms", "60000", "--slo-tpot-ms", "60000"]
    assert main(["replay", str(path), "--url", server.url, "--model", "tiny", *slo]) == 0
    assert "goodput  1.00 share" in capsys.readouterr().out


def test_models_and_health_are_told(server):
    status, told = server.ask("GET", "/v1/models")
    assert (status, told["object"], [model["id"] for model in told["data"]]) == (200, "list", ["tiny"])
    assert server.ask("GET", "/v1/models/tiny")[1]["object"] == "model"
    assert server.ask("GET", "/health") == (200, {"status": "ok"})
    assert server.ask("GET", "/v2")[0] == 404
    status, told = server.ask("POST", "/v1/chat/completions", model="tiny")
    assert (status, told["error"]["message"]) == (404, "found /v1/chat/completions; expected /v1/completions")


GOOD = {"model": "tiny", "prompt": [1, 2]}
BAD = {
    "another model": ({**GOOD, "model": "gpt"}, 404, "model: found 'gpt'; expected 'tiny'"),
    "text": ({**GOOD, "prompt": "abc"}, 400, "prompt: found text; expected a list of token ids"),
    "a token beyond the vocabulary": ({**GOOD, "prompt": [97]}, 400, "expected a list of token ids from 0 to 96"),
    "no prompt": ({"model": "tiny"}, 400, "prompt: found 'None'"),
    "several prompts": ({**GOOD, "prompt": [[1], [2]]}, 400, "prompt: found '[[1], [2]]'"),
    "sampling": ({**GOOD, "temperature": 0.7}, 400, "temperature: found 0.7; expected 0 or nothing"),
    "a stop": ({**GOOD, "stop": ["x"]}, 400, "stop: found ['x']; expected None or nothing"),
    "an unknown parameter": ({**GOOD, "grammar": "x"}, 400, "grammar: found a parameter that this server does not know"),
    "no token": ({**GOOD, "max_tokens": 0}, 400, "max_tokens: found 0 behind 2 tokens; expected 1 to 62"),
    "too many tokens": ({**GOOD, "max_tokens": 63}, 400, "max_tokens: found 63 behind 2 tokens; expected 1 to 62"),
    "a long prompt": ({**GOOD, "prompt": [1] * 64}, 400, "prompt: found 64 tokens; expected at most 63"),
    "a word for stream": ({**GOOD, "stream": "yes"}, 400, "stream: found 'yes'; expected true or false"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_request_is_told_in_openais_form(bad, server):
    fields, expected, message = BAD[bad]
    status, told = server.ask(**fields)
    assert status == expected
    assert message in told["error"]["message"]
    assert told["error"]["type"] == "invalid_request_error"


def test_a_body_that_is_no_json_or_has_no_length_is_told(server):
    for body in (b"{", b"[]"):
        with pytest.raises(BadRequest, match="found a body that is"):
            asked_of(body, TINY)
    with socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port), timeout=60) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 411 " in raw.recv(4096)


def test_byte_models_take_text_and_say_text():
    model = Model("byte_lm", model_named("byte_lm", 1, 64, torch.device("cpu")).config, {}, 64)
    assert asked_of(b'{"model": "byte_lm", "prompt": "\xc3\xa9", "max_tokens": 3}', model) == Asked([0xC3, 0xA9], 3, False, False)
    assert list(model.pieces(iter([0xC3, 0xA9, 0x61, 0xC3]), 4)) == ["", "\u00e9", "a", "\ufffd"]


def test_a_client_that_leaves_gives_its_slot_back_and_a_dead_engine_ends_the_server():
    started = Started("--model", "tiny", "--longest", "8192")
    try:
        raw = [socket.create_connection((urlsplit(started.url).hostname, urlsplit(started.url).port), timeout=60) for _ in range(2)]
        body = json.dumps({"model": "tiny", "prompt": [1], "max_tokens": 8191, "stream": True}).encode()
        for each in raw:
            each.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert each.recv(4096)
        for each in raw:
            each.close()
        began = time.monotonic()
        assert len(started.complete([1, 2], 2)["choices"][0]["text"].split()) == 2
        assert time.monotonic() - began < 10
        engines = [child for child in psutil.Process(started.process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
        assert len(engines) == 1
        engines[0].kill()
        started.ask(model="tiny", prompt=[1])  # whatever is answered, the front finds out
        until(lambda: started.process.poll() is not None, "the server's end")
        assert started.process.returncode == 7
        assert started.process.stderr.read().endswith("error: engine 0 has died; expected it to answer\n")
    finally:
        started.process.kill()
        started.process.communicate()


def test_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, SERVER, "--model", "tiny", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT_ROOT, timeout=120)
    assert done.returncode == 1
    assert f"error: --port {port}: Address already in use; expected a free port of 127.0.0.1" in done.stderr
