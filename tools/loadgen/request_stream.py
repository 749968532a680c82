"""The requests of a serving pair for any server: traces as JSONL, replayed against an OpenAI-compatible endpoint.

`draw` writes a trace of a workload, the same for the same seed. `replay` sends each request when it is due to the completions endpoint at
--url, streams the answer, and prints the figures that a row of the harness has, from the same code. Prompts are token ids. A chunk of the
stream counts as one token.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import time
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError, ExitCode
from common.python.measure.serving_figures import figures_of_traces
from common.python.pairs.serving import unit_of
from common.python.pairs.traces import Planned, draw_trace
from common.python.results import ServedRequest
from common.python.storage import write_whole
from common.python.wording import significant

_TIMEOUT_S = 600.0
_DATA = b"data:"
_DONE = b"[DONE]"


@dataclass(frozen=True)
class Endpoint:
    """Where completions are asked for: a URL such as http://127.0.0.1:8000/v1/completions, and the model's name there."""

    url: str
    model: str

    def connection(self) -> http.client.HTTPConnection:
        """A connection of its own. Raises BenchmarkError for a URL that is none."""
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BenchmarkError(
                f"--url {self.url}: found no http or https address; expected one such as http://127.0.0.1:8000/v1/completions"
            )
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port, timeout=_TIMEOUT_S)

    def body(self, planned: Planned) -> str:
        """What is asked for a request: as many tokens as it wants, greedily, streamed, past any end that the model would make."""
        asked = {"model": self.model, "prompt": list(planned.prompt), "max_tokens": planned.output_tokens}
        return json.dumps(asked | {"temperature": 0.0, "stream": True, "ignore_eos": True})


def trace_text(trace: Sequence[Planned]) -> str:
    """A trace as JSONL, a request a line."""
    return "".join(json.dumps(vars(planned) | {"prompt": list(planned.prompt)}) + "\n" for planned in trace)


def read_trace(path: Path) -> tuple[Planned, ...]:
    """The trace in a file. Raises BenchmarkError, naming the line that is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path}: cannot be read; expected a trace that `draw` wrote") from error
    trace = tuple(_planned(line, f"{path}:{number}") for number, line in enumerate(lines, start=1))
    if not trace:
        raise BenchmarkError(f"{path}: found no request; expected one a line")
    return trace


def _planned(line: str, where: str) -> Planned:
    try:
        fields: Any = json.loads(line)
        return Planned(float(fields["due_s"]), tuple(map(int, fields["prompt"])), int(fields["output_tokens"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{where}: found no request; expected due_s, prompt and output_tokens") from error


def replay(trace: Sequence[Planned], endpoint: Endpoint) -> list[ServedRequest]:
    """Send each request when it is due, on a connection of its own, and stamp its tokens. Raises BenchmarkError for a bad answer."""
    endpoint.connection()
    begin_ns = time.monotonic_ns()
    with ThreadPoolExecutor(max_workers=len(trace)) as pool:
        return list(pool.map(lambda planned: _served(planned, endpoint, begin_ns), trace))


def _served(planned: Planned, endpoint: Endpoint, begin_ns: int) -> ServedRequest:
    due_us = round(planned.due_s * 1e6)
    time.sleep(max(0.0, due_us / 1e6 - (time.monotonic_ns() - begin_ns) / 1e9))
    connection = endpoint.connection()
    try:
        path = urllib.parse.urlsplit(endpoint.url).path or "/"
        connection.request("POST", path, endpoint.body(planned), {"Content-Type": "application/json"})
        stamps_us = _stamps_us(connection.getresponse(), endpoint, begin_ns)
    except (OSError, http.client.HTTPException) as error:
        raise BenchmarkError(f"--url {endpoint.url}: found {type(error).__name__}: {error}; expected a server that answers") from error
    finally:
        connection.close()
    if len(stamps_us) != planned.output_tokens:
        found = f"found {len(stamps_us)} chunks of an answer of {planned.output_tokens} tokens"
        raise BenchmarkError(f"--url {endpoint.url}: {found}; expected a chunk a token")
    return ServedRequest(due_us=due_us, prompt_tokens=len(planned.prompt), tokens_us=tuple(stamps_us))


def _stamps_us(response: http.client.HTTPResponse, endpoint: Endpoint, begin_ns: int) -> list[int]:
    """When each chunk with text came, in us from the trace's begin."""
    if response.status != http.client.OK:
        told = " ".join(response.read(200).decode(errors="replace").split())
        raise BenchmarkError(f"--url {endpoint.url}: found status {response.status} ({told}); expected 200 and a stream")
    stamps = []
    while line := response.readline():
        data = line.strip()
        if not data.startswith(_DATA) or data.removeprefix(_DATA).strip() == _DONE:
            continue
        if json.loads(data.removeprefix(_DATA)).get("choices"):
            stamps.append((time.monotonic_ns() - begin_ns) // 1000)
    return stamps


def drawn(chosen: argparse.Namespace) -> tuple[Planned, ...]:
    """The trace that the arguments ask for. Raises BenchmarkError."""
    # Here, for it imports torch, and a replay needs none.
    from common.python.child.describer import with_kwargs
    from common.python.child.sides.loader import load_workload

    workload = load_workload(chosen.workload)
    if workload.serving is None:
        raise BenchmarkError(f"{chosen.workload}: found no serving; expected a workload that serves requests")
    shapes = {**workload.timed_shapes, **({"cpu": workload.cpu_at} if workload.cpu_at else {})}
    if chosen.shape not in shapes:
        raise BenchmarkError(f"--shape {chosen.shape}: {chosen.workload.name} has none; expected one of {', '.join(shapes)}")
    kwargs = dict(word.split("=", 1) for word in chosen.kwargs.split() if "=" in word)
    traffic = workload.serving.traffic_at(with_kwargs(shapes[chosen.shape], kwargs, chosen.workload.name))
    if traffic.share_of_saturation and not chosen.saturation_per_s:
        found = f"arrivals at {traffic.share_of_saturation:g} of saturation"
        raise BenchmarkError(f"{chosen.workload.name}: found {found}; expected --saturation-per-s, which a run of the pair measures")
    return draw_trace(traffic, workload.serving.vocabulary, chosen.seed, traffic.rate_per_s(chosen.saturation_per_s))


def _parser() -> Arguments:
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw", help="write a trace of a serving workload")
    draw.add_argument("workload", type=Path, help="the workload's file")
    draw.add_argument("--shape", default="default", help="a timed shape's name, or cpu")
    draw.add_argument("--kwargs", default="", help='entries of the shape to change: "arrival_poisson=0.8"')
    draw.add_argument("--seed", type=int, default=0)
    draw.add_argument("--saturation-per-s", type=finite_above_0, default=0.0, help="requests/s that loads are shares of")
    draw.add_argument("--out", type=Path, required=True, help="the file to write")
    send = commands.add_parser("replay", help="send a trace to a server and print what its requests saw")
    send.add_argument("trace", type=Path, help="a file that `draw` wrote")
    send.add_argument("--url", required=True, help="of completions: http://127.0.0.1:8000/v1/completions")
    send.add_argument("--model", default="default", help="the model's name on the server")
    send.add_argument("--slo-ttft-ms", type=finite_above_0, required=True, help="the bound of TTFT that goodput counts against")
    send.add_argument("--slo-tpot-ms", type=finite_above_0, required=True, help="the bound of TPOT that goodput counts against")
    send.add_argument("--json", action="store_true", help="print figures and stamps as JSON")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Write a trace, or replay one."""
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.command == "draw":
            trace = drawn(chosen)
            write_whole(chosen.out, trace_text(trace))
            print(f"{chosen.out}: {len(trace)} requests in {trace[-1].due_s:.3g} s")
            return int(ExitCode.GOOD)
        requests = replay(read_trace(chosen.trace), Endpoint(chosen.url, chosen.model))
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    figures = figures_of_traces([requests], chosen.slo_ttft_ms, chosen.slo_tpot_ms)
    if chosen.json:
        print(json.dumps({"figures": figures, "requests": [request.model_dump() for request in requests]}, indent=2))
    else:
        print("\n".join(f"{name}  {significant(value)} {unit_of(name)}" for name, value in figures.items()))
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
