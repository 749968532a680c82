"""Cheat: walks up the stack to the request, sends an answer with its nonce before the harness does, and swallows the true one."""

import sys
import time


def prepare(x):
    def step():
        frame, found = sys._getframe(), {}
        while frame:
            found = {**frame.f_locals, **found}
            frame = frame.f_back
        request, connection = found["request"], found["connection"]
        if request.kind == "time" and not request.picks:
            forge(request, connection)
        time.sleep(0.005)
        return x.sum(dim=1)

    return step


def forge(request, connection):
    from common.python.processes.messages import Timed

    fields = {"sm_clock_hz": [], "void": 0} if "void" in Timed.model_fields else {}
    connection.send(Timed(nonce=request.nonce, samples_ns=[1.0] * request.count, picks=[], notes=[], **fields))
    connection.send = lambda answer: vars(connection).pop("send")
