"""A copy of a few thousand floats, as short as a launch: nothing is planted in it, as no bar asks for that of short steps."""

from __future__ import annotations

from dataclasses import replace

from tools.noise.workload_copy import WORKLOAD as COPY

WORKLOAD = replace(COPY, time_at={"16 kB": {"n": 4 << 10}}, cpu_at={"n": 4 << 10})
