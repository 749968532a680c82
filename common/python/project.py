"""Where this project lies: apart from the settings, so that a listing of it need not load what validates them."""

from __future__ import annotations

from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]
