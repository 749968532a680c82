"""Ceilings of machines that do not exist, in round numbers."""

from __future__ import annotations

from typing import Any

from common.python.machine.ceilings import Ceiling, MachineCeilings
from tests.support.factories import an_interval

TERA = 1e12

# Reads at 4 TB/s, copies at 3.2 and writes at 2 (1/4, 1/3.2, 1/2 ns a kB); the L2 holds 50 MB at five times that.
RATES = {
    "dram_read": 4.0 * TERA,
    "dram_copy": 3.2 * TERA,
    "dram_write": 2.0 * TERA,
    "l2_read": 20.0 * TERA,
    "l2_copy": 16.0 * TERA,
    "l2_write": 10.0 * TERA,
    "h2d": 0.05 * TERA,
    "peer_out": 0.3 * TERA,
    "peer_in": 0.4 * TERA,
    "storage_read": 0.005 * TERA,
}
FLOPS = {"fp32": 50.0 * TERA, "fp32_fma": 60.0 * TERA, "bf16": 800.0 * TERA}
SECONDS = {"launch": 2e-6}


def a_ceiling(name: str, value: float, unit: str, **changes: Any) -> Ceiling:
    l2 = "hot" if name.startswith("l2") else "clean" if name.startswith("dram") else "none"
    fields: dict[str, Any] = {
        "name": name,
        "value": an_interval(value, value / 100),
        "unit": unit,
        "mode": "burst",
        "l2": l2,
        "samples": 12,
        "sm_clock_hz": 2e9 if unit == "flop/s" else None,
        "how": "made up",
    }
    return Ceiling(**fields | changes)


CEILINGS = (
    *(a_ceiling(name, rate, "bytes/s") for name, rate in RATES.items()),
    *(a_ceiling(name, rate, "flop/s") for name, rate in FLOPS.items()),
    *(a_ceiling(name, seconds, "s") for name, seconds in SECONDS.items()),
)


def synthetic_ceilings(**changes: Any) -> MachineCeilings:
    fields: dict[str, Any] = {
        "machine": "GPU-synthetic",
        "name": "a GPU that does not exist",
        "device": "cuda",
        "driver": "1.0",
        "torch": "2.0",
        "measured": "2026-01-02T03:04:05+00:00",
        "seconds": 1.0,
        "sm_clock_max_mhz": 2000,
        "memory_clock_max_mhz": 3000,
        "power_limit_w": 700.0,
        "cache_bytes": 50_000_000,
        "ceilings": CEILINGS,
        "missing": {},
    }
    return MachineCeilings(**fields | changes)
