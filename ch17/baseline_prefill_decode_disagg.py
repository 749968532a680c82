"""Baseline: one engine does both; a step takes a chunk of a prompt, and every running answer waits for it."""
# allows: processes

from common.serving.engines import Size, started


def prepare(weights, config, prompt, longest, slots, budget, arrivals, emit, device):
    with started(weights, config, 1, Size(slots, prompt + longest, budget), device) as fleet:

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
