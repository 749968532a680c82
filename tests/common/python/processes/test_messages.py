"""Messages arrive as they were sent or not at all, and an answer that is not the request's own is refused."""

import json
import os
import socket
import struct
import threading

import pytest
from pydantic import ValidationError

from common.python.errors import Status
from common.python.processes import messages
from common.python.processes.connection import Closed, Connection, ProtocolError, Silent, read_answer
from common.python.processes.messages import Failed


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Connection(ours), Connection(theirs)


def raw(message):
    return message.model_dump_json().encode()


def test_a_request_arrives_as_it_was_sent(ends):
    here, there = ends
    request = messages.Describe(workload="w.py", sides={"baseline": "b.py"}, kwargs={"n": "3"})
    here.send(request)
    assert there.receive_request() == request


@pytest.mark.parametrize("value", [1, 1.0, True, "1", 0.1, -(2**62), 1e300, False, 0, "true", "ü\n"])
def test_a_shape_entry_keeps_its_type(ends, value):
    here, there = ends
    here.send(messages.Prepare(shape={"n": value}, seed=1, live_seed=2))
    found = there.receive_request().shape["n"]
    assert (type(found), found) == (type(value), value)


def test_a_sample_keeps_every_bit():
    sample = 0.1 + 0.2
    error = messages.Judged(nonce="a", digest="d", outputs={"y": {"max_abs": sample, "max_rel": 0.0, "mismatched": 0.0}}, mismatch="")
    assert read_answer(raw(error), messages.Probe(nonce="a"), messages.Judged).outputs["y"].max_abs == sample


def test_two_requests_have_two_nonces():
    assert messages.Probe().nonce != messages.Probe().nonce


def test_a_message_larger_than_the_sockets_buffer_arrives_whole(ends):
    here, there = ends
    request = messages.Describe(workload="w" * (4 << 20), sides={}, kwargs={})
    sender = threading.Thread(target=here.send, args=(request,))
    sender.start()
    assert there.receive_request() == request
    sender.join()


def test_a_descriptor_comes_with_its_message(ends):
    here, there = ends
    reader, writer = os.pipe()
    here.send(messages.Fork(role="worker", log="log", core=-1), (writer,))
    os.close(writer)
    request, (received,) = there.receive_with_descriptors(1)
    os.write(received, b"through")
    os.close(received)
    assert request.role == "worker"
    assert os.read(reader, 16) == b"through"
    os.close(reader)


def test_an_answer_is_read_as_what_was_asked_for():
    request = messages.Probe()
    answer = messages.Probed(nonce=request.nonce, torch="2.13", cuda=False)
    assert read_answer(raw(answer), request, messages.Probed) == answer


def test_a_failure_is_an_answer_to_any_request():
    request = messages.Probe()
    failure = Failed(nonce=request.nonce, status=Status.CRASHED, reason="it broke")
    assert read_answer(raw(failure), request, messages.Probed) == failure


REQUEST = messages.Probe(nonce="00ff")
FORGED = {
    "another nonce": {"kind": "probed", "nonce": "00fe", "torch": "2", "cuda": True},
    "no nonce": {"kind": "probed", "torch": "2", "cuda": True},
    "another kind": {"kind": "loaded", "nonce": "00ff", "seconds": 1.0},
    "a missing field": {"kind": "probed", "nonce": "00ff", "torch": "2"},
    "a further field": {"kind": "probed", "nonce": "00ff", "torch": "2", "cuda": True, "speedup": 80},
    "a status that is none": {"kind": "failed", "nonce": "00ff", "status": "FINE", "reason": ""},
    "a list": ["probed"],
    "a number": 3,
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_answer_is_refused(what):
    with pytest.raises(ProtocolError, match="expected"):
        read_answer(json.dumps(FORGED[what]).encode(), REQUEST, messages.Probed)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"null"])
def test_noise_is_refused(data):
    with pytest.raises(ProtocolError, match="expected the answer of a Probe request"):
        read_answer(data, REQUEST, messages.Probed)


def test_a_length_that_is_noise_is_refused_before_it_is_waited_for(ends):
    here, there = ends
    here.socket.sendall(struct.pack("!I", 0xFFFFFFFF))
    with pytest.raises(ProtocolError, match="4294967295 bytes; expected at most"):
        there.receive(5)


def test_silence_ends_at_the_deadline(ends):
    with pytest.raises(Silent):
        ends[0].receive(0.01)


def test_half_a_message_is_silence_too(ends):
    here, there = ends
    here.socket.sendall(struct.pack("!I", 10) + b"12345")
    with pytest.raises(Silent):
        there.receive(0.01)


def test_a_closed_end_is_told_from_silence(ends):
    here, there = ends
    there.socket.close()
    with pytest.raises(Closed):
        here.receive(5)
    with pytest.raises(Closed):
        here.send(REQUEST)


def test_the_end_of_a_socket_in_the_middle_of_a_message_is_its_end(ends):
    here, there = ends
    there.socket.sendall(struct.pack("!I", 10) + b"12345")
    there.socket.close()
    with pytest.raises(Closed):
        here.receive(5)


def test_a_request_of_no_known_kind_is_refused(ends):
    here, there = ends
    body = b'{"kind":"format_disk","nonce":"1"}'
    here.socket.sendall(struct.pack("!I", len(body)) + body)
    with pytest.raises(ValidationError, match="format_disk"):
        there.receive_request()
