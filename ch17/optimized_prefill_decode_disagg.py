"""One engine prefills; another fetches the blocks and decodes."""
# predicts: baseline itl_ms.p95 9.25 = 1e3 * (budget * 1.51e9 / fp32_matmul + 1.7e-3) on h100  (a step with a full chunk in it)
# predicts: optimized itl_ms.p95 5.7 = 1e3 * (1.7e-3 + 2 * 2e-3)  (a decode step, and two time slices of the other: 2 ms assumed)
# allows: processes

from common.serving.engines import Size, started

PREFILL, DECODE = 0, 1


def prepare(weights, config, prompt, longest, slots, arrivals, emit, device):
    with started(weights, config, 2, Size(slots, prompt + longest), device) as fleet:

        def serve():
            arrived, requests = arrivals.wait(), {}
            while arrived or requests:
                for request in arrived:
                    requests[request.id] = request
                    fleet.send(PREFILL, request.id, request.prompt, held=True)
                for said in fleet.poll(0.0005):
                    done = emit([requests[name] for name in said.names], said.tokens, said.logits)
                    for name in said.names:
                        if name in done:
                            fleet.forget(name)
                            del requests[name]
                        elif said.engine == PREFILL:
                            fleet.move(name, DECODE)
                arrived = arrivals.poll() if requests else arrivals.wait()

        yield serve
