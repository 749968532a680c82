"""Baseline: every step waits for its figures of the device, and observes them."""
# allows: sync

from shared_monitored import Loop
from shared_scraped import Figures

from common.serving.metrics import now


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    loop = Loop(weights, config, slots, prompt + longest, device)

    def serve():
        figures = Figures(device)

        def stepped(phase, running, done, surprisal):
            queued = now()
            figures.observe(phase, running, done, queued, surprisal.tolist())  # the host waits for the device

        loop.serve(arrivals, emit, figures.latencies.arrived, stepped)
        figures.tell(report)

    return serve
