"""The loop of a front that routes requests to engines in processes of their own."""

from common import Metric
from common.serving.engines import Size, started


def routed(choose, weights, config, engines, slots, capacity, arrivals, emit, report, device):
    """What `prepare` yields: a front that sends each request to the engine that `choose(prompt_tokens, loads)` names."""
    with started(weights, config, engines, Size(slots, capacity), device) as fleet:

        def serve():
            arrived, open_requests, handed = arrivals.wait(), {}, [0] * engines
            while arrived or open_requests:
                for request in arrived:
                    engine = choose(len(request.prompt), fleet.loads)
                    handed[engine] += 1
                    open_requests[request.id] = request
                    fleet.send(engine, request.id, request.prompt)
                for said in fleet.poll(0.0005):
                    for request_id in emit([open_requests[name] for name in said.names], said.tokens, said.logits):
                        fleet.forget(request_id)
                        del open_requests[request_id]
                arrived = arrivals.poll() if open_requests else arrivals.wait()
            report("busiest_engine", Metric(max(handed) / sum(handed), "share of requests", "lower"))

        yield serve
