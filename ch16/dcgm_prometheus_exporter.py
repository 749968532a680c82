"""Serves what each GPU does to Prometheus, under the names of NVIDIA's DCGM exporter. It asks NVML: neither DCGM nor root is needed.

./setup.sh python ch16/dcgm_prometheus_exporter.py [--port 9400] [--address 127.0.0.1] [--once]

`grafana_dashboard.json` beside it draws these gauges and the latencies that common/serving/metrics.py exports; import it in Grafana.
--once prints the page instead of serving it. It needs prometheus-client: ./setup.sh pip install prometheus-client.
"""

import argparse
import importlib
import sys
import threading

import pynvml

from common.python.machine.description import answer, nvml_session
from common.serving.metrics import gauges_of

MIB = 1 << 20
# Our gauge, DCGM's name, what to divide by, and what it is.
NAMES = (
    ("gpu_power_watts", "DCGM_FI_DEV_POWER_USAGE", 1, "Power draw in W."),
    ("gpu_utilization_percent", "DCGM_FI_DEV_GPU_UTIL", 1, "Share of time in which a kernel ran, in percent."),
    ("gpu_memory_used_bytes", "DCGM_FI_DEV_FB_USED", MIB, "Memory in use, in MiB."),
    ("gpu_temperature_celsius", "DCGM_FI_DEV_GPU_TEMP", 1, "Temperature in degrees Celsius."),
    ("gpu_sm_clock_hertz", "DCGM_FI_DEV_SM_CLOCK", 1e6, "Clock of the SMs in MHz."),
)
LABELS = ("gpu", "UUID", "modelName")


class Gpus:
    """A collector: each scrape asks NVML, in the thread that answers the scrape. `nvml` is the module pynvml or its like."""

    def __init__(self, nvml, family):
        self._nvml, self._family = nvml, family

    def collect(self):
        """Yields a family a gauge, a sample a GPU that has it."""
        handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        labels = [
            (str(i), *(str(answer(self._nvml, query, handle)) for query in (self._nvml.nvmlDeviceGetUUID, self._nvml.nvmlDeviceGetName)))
            for i, handle in enumerate(handles)
        ]
        found = [gauges_of(self._nvml, handle) for handle in handles]
        for ours, name, unit, text in NAMES:
            family = self._family(name, text, labels=LABELS)
            for gauges, values in zip(found, labels, strict=True):
                if ours in gauges:
                    family.add_metric(values, gauges[ours] / unit)
            yield family


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=9400)
    parser.add_argument("--address", default="127.0.0.1", help="where it listens; 0.0.0.0 for all of the machine's")
    parser.add_argument("--once", action="store_true")
    chosen = parser.parse_args()
    try:
        client, core = importlib.import_module("prometheus_client"), importlib.import_module("prometheus_client.core")
    except ImportError:
        sys.exit("found no prometheus_client; expected it installed: ./setup.sh pip install prometheus-client")
    with nvml_session(pynvml) as problem:
        if problem:
            sys.exit(f"found no NVML ({problem}); expected NVIDIA's driver")
        registry = client.CollectorRegistry()
        registry.register(Gpus(pynvml, core.GaugeMetricFamily))
        if chosen.once:
            print(client.generate_latest(registry).decode(), end="")
            return
        client.start_http_server(chosen.port, addr=chosen.address, registry=registry)
        print(f"http://{chosen.address}:{chosen.port}/metrics", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
