"""The figures of a serving loop that Prometheus scrapes: latencies, the tokens' surprisal by phase, and the GPU's gauges."""

from common import Metric
from common.serving.metrics import Labelled, Latencies, Sensor


class Figures:
    """Latencies as the loop sees them, and the tokens' surprisal by phase."""

    def __init__(self, device):
        self.latencies, self._sensor = Latencies(), Sensor(device)
        self._surprisal = Labelled("llm_token_surprisal_nats", "How unlikely the model found its token.", "phase")

    def observe(self, phase, requests, done, queued, surprisal):
        """Count the tokens of a step that was queued at that time; `surprisal` are numbers of the host."""
        self.latencies.stepped(requests, done, queued)
        histogram = self._surprisal.of(phase)
        for value in surprisal:
            histogram.observe(value)

    def page(self):
        """What a scrape reads now."""
        return self.latencies.page(self._sensor.read(), self._surprisal)

    def tell(self, report):
        """Report a few of a trace's figures."""
        report("page_lines", Metric(len(self.page().splitlines()), "lines of a scrape", "neither"))
        report("gap_p99", Metric(1e3 * self.latencies.gap.quantile(0.99), "ms, from queued step to queued step", "lower"))
        report("surprisal_p95", Metric(self._surprisal.of("decode").quantile(0.95), "nats", "neither"))
