"""Baseline: one engine does both, so a new prompt's step holds up every running answer."""
# allows: processes

from common.serving.engines import started


def prepare(weights, config, prompt, longest, slots, arrivals, emit, device):
    with started(weights, config, 1, slots, prompt + longest, device) as fleet:

        def serve():
            arrived, requests = arrivals.wait(), {}
            while arrived or requests:
                for request in arrived:
                    requests[request.id] = request
                    fleet.send(0, request.id, request.prompt)
                for said in fleet.poll(0.0005):
                    for name in emit([requests[name] for name in said.names], said.tokens, said.logits):
                        fleet.forget(name)
                        del requests[name]
                arrived = arrivals.poll() if requests else arrivals.wait()

        yield serve
