"""An endpoint of OpenAI's protocol over the project's engines: POST /v1/completions, streamed or whole, GET /v1/models and /health.

    ./setup.sh python tools/serving/completions_server.py --model byte_lm --port 8000
    curl http://127.0.0.1:8000/v1/completions -d '{"model": "byte_lm", "prompt": "def main(", "max_tokens": 64}'

byte_lm predicts the next byte of Python source; tiny has random weights. Answers are greedy: a temperature other than 0, and whatever else
this server does not do, is refused with status 400 and a reason. It needs nothing but the standard library and torch. It listens on
this machine alone unless --address says otherwise, and asks nobody for a key.
"""

from __future__ import annotations

import codecs
import json
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

from common.models import config as presets
from common.models.config import Config
from common.models.decoder import init
from common.models.grow import grow, grown_config
from common.models.layers import Weights
from common.python.command import Arguments, exit_with
from common.python.errors import ExitCode
from common.python.project import PROJECT_ROOT
from common.serving.engines import Size, started
from common.tensor_files import read_tensors
from tools.serving.front import EngineDied, Front

_BYTES = 256  # the vocabulary of a model whose tokens are bytes
_LONGEST_BODY = 1 << 22  # bytes
_TOKENS = 16  # what OpenAI's protocol answers where nobody says how many
# What may be asked for only in this value, which changes nothing.
_ONLY = {"n": 1, "best_of": 1, "echo": False, "logprobs": None, "stop": None, "suffix": None, "top_p": 1, "logit_bias": None}
_ONLY |= {"presence_penalty": 0, "frequency_penalty": 0, "temperature": 0}
_READ = {"model", "prompt", "max_tokens", "stream", "stream_options"}
_IGNORED = {"ignore_eos", "seed", "user"}  # no token ends an answer, and a greedy answer has no seed


class BadRequest(Exception):
    """What a client asked for cannot be done; the text says what was found and what was expected."""

    def __init__(self, text: str, parameter: str | None = None, status: int = 400) -> None:
        super().__init__(text)
        self.parameter, self.status = parameter, status


@dataclass(frozen=True)
class Model:
    """What is served: a name, its config and weights, and how many tokens a prompt and its answer may have together."""

    name: str
    config: Config
    weights: Weights
    longest: int

    @property
    def has_bytes(self) -> bool:
        """Whether tokens are bytes of text; others are known by number alone."""
        return self.config.vocabulary == _BYTES

    def pieces(self, tokens: Iterator[int], count: int) -> Iterator[str]:
        """Each of `count` tokens' text. Bytes that are no whole character yet give none, and the last gives what is left of one."""
        if not self.has_bytes:
            yield from (f" {token}" for token in tokens)
            return
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield from (decoder.decode(bytes([token]), number == count) for number, token in enumerate(tokens, start=1))


@dataclass(frozen=True)
class Asked:
    """A completion that can be answered."""

    prompt: list[int]
    count: int
    is_streamed: bool
    has_usage: bool

    @property
    def usage(self) -> dict[str, int]:
        """How many tokens it has, as the protocol counts them."""
        return {"prompt_tokens": len(self.prompt), "completion_tokens": self.count, "total_tokens": len(self.prompt) + self.count}


def asked_of(body: bytes, model: Model) -> Asked:
    """The completion that a request's body asks for. Raises BadRequest."""
    try:
        fields: Any = json.loads(body)
    except ValueError as error:
        raise BadRequest("found a body that is no JSON; expected an object with model and prompt") from error
    if not isinstance(fields, dict):
        raise BadRequest(f"found a body that is {type(fields).__name__}; expected an object with model and prompt")
    if fields.get("model") != model.name:
        raise BadRequest(f"model: found {fields.get('model')!r}; expected {model.name!r}", "model", 404)
    for name, value in fields.items():
        if name in _ONLY and value is not None and value != _ONLY[name]:
            raise BadRequest(f"{name}: found {value!r}; expected {_ONLY[name]!r} or nothing, for this server does no other", name)
        if name not in _ONLY and name not in _READ | _IGNORED:
            raise BadRequest(f"{name}: found a parameter that this server does not know; expected it left out", name)
    prompt = _prompt(fields.get("prompt"), model)
    count = fields.get("max_tokens", _TOKENS)
    if not _is_count(count) or count < 1 or len(prompt) + count > model.longest:
        most = f"1 to {model.longest - len(prompt)}, for prompt and answer may have {model.longest} tokens"
        raise BadRequest(f"max_tokens: found {count!r} behind {len(prompt)} tokens; expected {most}", "max_tokens")
    options = fields.get("stream_options") or {}
    for name, value in (("stream", fields.get("stream") or False), ("stream_options", options)):
        if not isinstance(value, bool if name == "stream" else dict):
            raise BadRequest(f"{name}: found {value!r}; expected {'true or false' if name == 'stream' else 'an object'}", name)
    return Asked(prompt, count, bool(fields.get("stream")), bool(options.get("include_usage")))


def _prompt(prompt: Any, model: Model) -> list[int]:
    if isinstance(prompt, str) and not model.has_bytes:
        raise BadRequest(f"prompt: found text; expected a list of token ids, for {model.name} has no tokenizer", "prompt")
    tokens = list(prompt.encode()) if isinstance(prompt, str) else prompt
    vocabulary = model.config.vocabulary
    if not isinstance(tokens, list) or not tokens or not all(_is_count(token) and 0 <= token < vocabulary for token in tokens):
        kind = "text or a list" if model.has_bytes else "a list"
        raise BadRequest(f"prompt: found {str(prompt)[:60]!r}; expected {kind} of token ids from 0 to {vocabulary - 1}", "prompt")
    if len(tokens) >= model.longest:
        raise BadRequest(f"prompt: found {len(tokens)} tokens; expected at most {model.longest - 1}", "prompt")
    return tokens


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Server(ThreadingHTTPServer):
    """A thread a connection, all of which ask one front."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], model: Model, front: Front) -> None:
        super().__init__(address, Handler)
        self.model, self.front, self.began = model, front, int(time.time())
        self._ends = False

    def end(self, *_: object) -> None:
        """Have `serve_forever` return soon; for signals and any thread."""
        if not self._ends:
            self._ends = True
            threading.Thread(target=self.shutdown).start()

    def service_actions(self) -> None:
        """Called twice a second: without engines there is nothing to serve."""
        if self.front.failure:
            self.end()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a token must not wait for the next

    def do_GET(self) -> None:
        """Models, and whether engines answer."""
        model = {"id": self.server.model.name, "object": "model", "created": self.server.began, "owned_by": "performance-pairs"}
        if self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [model]})
        elif self.path == f"/v1/models/{model['id']}":
            self._send(200, model)
        elif self.path == "/health":
            failure = self.server.front.failure
            self._send(503 if failure else 200, {"status": failure or "ok"})
        else:
            self._refuse(BadRequest(f"found {self.path}; expected /v1/models, /health, or /v1/completions by POST", status=404))

    def do_POST(self) -> None:
        """A completion."""
        try:
            body = self._body()
            if self.path != "/v1/completions":
                raise BadRequest(f"found {self.path}; expected /v1/completions", status=404)
            asked = asked_of(body, self.server.model)
            if self.server.front.failure:
                raise BadRequest(self.server.front.failure, status=503)
        except BadRequest as error:
            self._refuse(error)
            return
        (self._stream if asked.is_streamed else self._whole)(asked)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            self.close_connection = True  # what follows is not read
            raise BadRequest(
                f"Content-Length: found {length or 'none'}; expected at most {_LONGEST_BODY} bytes", status=413 if length else 411
            )
        return self.rfile.read(int(length))

    def _whole(self, asked: Asked) -> None:
        frame = self._frame()
        try:
            text = "".join(self.server.model.pieces(self.server.front.answer(asked.prompt, asked.count), asked.count))
        except EngineDied as error:
            self._refuse(BadRequest(str(error), status=503))
            return
        self._send(200, frame | {"choices": [_choice(text, "length")], "usage": asked.usage})

    def _stream(self, asked: Asked) -> None:
        """A chunk a token, as server-sent events. The connection's end is the answer's."""
        self.close_connection = True
        frame = self._frame()
        with closing(self.server.front.answer(asked.prompt, asked.count)) as tokens:
            try:
                self.send_response(200)
                for header in (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("Connection", "close")):
                    self.send_header(*header)
                self.end_headers()
                for number, piece in enumerate(self.server.model.pieces(tokens, asked.count), start=1):
                    self._event(frame | {"choices": [_choice(piece, "length" if number == asked.count else None)]})
                if asked.has_usage:
                    self._event(frame | {"choices": [], "usage": asked.usage})
                self.wfile.write(b"data: [DONE]\n\n")
            except EngineDied as error:  # the status is sent already
                self._event({"error": _error(str(error), "server_error", None)})
            except ConnectionError:
                pass  # the client has left, and the front is told by the answer's end

    def _event(self, document: Mapping[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(document).encode() + b"\n\n")

    def _frame(self) -> dict[str, Any]:
        told = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time())}
        return told | {"model": self.server.model.name}

    def _refuse(self, error: BadRequest) -> None:
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        self._send(error.status, {"error": _error(str(error), kind, error.parameter)})

    def _send(self, status: int, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode() + b"\n"
        self.send_response(status)
        for header in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a line a request would cost more than the request."""


def _choice(text: str, finish: str | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}


def _error(text: str, kind: str, parameter: str | None) -> dict[str, Any]:
    return {"message": text, "type": kind, "param": parameter, "code": None}


def model_named(name: str, width: int, longest: int, device: torch.device) -> Model:
    """byte_lm with its trained weights, `width` times as wide, or tiny with random ones; float32."""
    rand = torch.Generator(device).manual_seed(0)
    if name == "tiny":
        return Model(name, presets.tiny(), init(presets.tiny(), rand), longest)
    trained = replace(presets.byte_lm(), dtype=torch.float32)
    config = grown_config(trained, width=width)
    stored = read_tensors((PROJECT_ROOT / "common/models/assets/byte_lm.safetensors").read_bytes(), device)
    return Model(name, config, grow(stored, trained, config, rand), longest)


def _parser() -> Arguments:
    parser = Arguments(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=("byte_lm", "tiny"), default="byte_lm")
    parser.add_argument("--width", type=int, choices=(1, 4, 16), default=1, help="times as wide as byte_lm, with the same answers")
    parser.add_argument("--engines", type=int, choices=range(1, 9), default=1, metavar="1..8", help="processes, all on one device")
    parser.add_argument("--slots", type=int, choices=range(1, 257), default=16, metavar="1..256", help="answers at a time in an engine")
    parser.add_argument("--longest", type=int, choices=range(2, 8193), default=2048, metavar="2..8192", help="tokens of prompt and answer")
    parser.add_argument("--address", default="127.0.0.1", help="where it listens; 0.0.0.0 for all of the machine's")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal comes, or an engine has died."""
    chosen = _parser().parse_args(arguments)
    if chosen.model == "tiny" and chosen.width != 1:
        print(f"error: --width {chosen.width}: found --model tiny; expected it with byte_lm alone", file=sys.stderr)
        return int(ExitCode.USAGE)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the engines inherit it: Ctrl-C is for this process, which ends them
    model = model_named(chosen.model, chosen.width, chosen.longest, device)
    with started(model.weights, model.config, chosen.engines, Size(chosen.slots, chosen.longest), device) as fleet, Front(fleet) as front:
        try:
            server = Server((chosen.address, chosen.port), model, front)
        except OSError as error:
            print(f"error: --port {chosen.port}: {error.strerror}; expected a free port of {chosen.address}", file=sys.stderr)
            return int(ExitCode.USAGE)
        with server:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, server.end)
            print(f"http://{chosen.address}:{server.server_port}/v1/completions serves {model.name} on {device.type}", flush=True)
            server.serve_forever()
        if front.failure:
            print(f"error: {front.failure}", file=sys.stderr)
            return int(ExitCode.BROKEN)
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
