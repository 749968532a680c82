"""How messages travel: length-prefixed JSON over a socket; an answer that is not the request's own is refused."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from common.python.processes.messages import Answer, AnyRequest, Failed, Message, Request

T = TypeVar("T", bound=Answer)

_LENGTH = struct.Struct("!I")
_LONGEST = 64 << 20
_REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(AnyRequest)


class ProtocolError(Exception):
    """What came over the socket is not a message of this protocol."""


class Closed(Exception):
    """The other end of the socket is closed."""


class Silent(Exception):
    """Nothing came before the deadline."""


class Connection:
    """One end of a socket that carries messages."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def send(self, message: Message, descriptors: tuple[int, ...] = ()) -> None:
        """Send `message` whole, with file descriptors beside it. Raises Closed."""
        body = message.model_dump_json().encode()
        data = _LENGTH.pack(len(body)) + body
        try:
            if descriptors:
                sent = socket.send_fds(self.socket, [data], list(descriptors))
                data = data[sent:]
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def receive(self, seconds: float | None = None) -> bytes:
        """One message's JSON. Raises Closed, Silent after `seconds`, or ProtocolError for an impossible length."""
        deadline = None if seconds is None else time.monotonic() + seconds
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > _LONGEST:
            raise ProtocolError(f"found a message of {length} bytes; expected at most {_LONGEST}")
        return self._exactly(length, deadline)

    def receive_request(self) -> AnyRequest:
        """Wait without limit for the next request, and return it. Raises Closed when the other end has closed the connection."""
        return _REQUEST.validate_json(self.receive())

    def receive_with_descriptors(self, most: int) -> tuple[AnyRequest, list[int]]:
        """The next request and up to `most` file descriptors that came with it. Raises Closed."""
        head, descriptors, _, _ = socket.recv_fds(self.socket, _LENGTH.size, most)
        if not head:
            raise Closed
        head += self._exactly(_LENGTH.size - len(head), None)
        (length,) = _LENGTH.unpack(head)
        return _REQUEST.validate_json(self._exactly(length, None)), descriptors

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Silent
            self.socket.settimeout(left)
            try:
                part = self.socket.recv(count - len(parts))
            except TimeoutError as error:
                raise Silent from error
            except ConnectionResetError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)


def read_answer(data: bytes, request: Request, expected: type[T]) -> T | Failed:
    """The answer in `data` if it echoes `request` and is of the expected kind. Raises ProtocolError for anything else."""
    try:
        fields = json.loads(data)
        nonce = fields["nonce"]
        answer: type[T] | type[Failed] = Failed if fields["kind"] == "failed" else expected
        if nonce != request.nonce:
            raise ProtocolError(f"found an answer with nonce {nonce!r}; expected {request.nonce!r}, that of the request")
        return answer.model_validate(fields)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise ProtocolError(f"found {data[:80]!r}; expected the answer of a {type(request).__name__} request") from error
