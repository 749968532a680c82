"""Tensors by name in a safetensors file: 8 bytes of length, a JSON header, then the raw little-endian values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_ALIGNMENT = 8


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write `tensors`, sorted by name: equal tensors make equal files. KeyError for a dtype that the format lacks."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    for name, tensor in sorted(tensors.items()):
        data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        start, end = end, end + len(data)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def read_tensors(data: bytes, device: torch.device) -> dict[str, torch.Tensor]:
    """The tensors in the bytes of such a file, each in storage of its own on `device`. ValueError for other bytes."""
    header, start = _header(data)
    body = bytearray(data[start:])
    return {name: _tensor(body, entry, device) for name, entry in header.items()}


def tensor_shapes(data: bytes) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Shape and dtype of every tensor in the bytes of such a file. ValueError for other bytes."""
    return {name: (tuple(entry["shape"]), _DTYPES[entry["dtype"]]) for name, entry in _header(data)[0].items()}


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """The entries by name, sorted, and where the values begin."""
    length = int.from_bytes(data[:8], "little")
    if not 0 < length <= len(data) - 8:
        raise ValueError(f"found a header of {length} bytes in {len(data)}; expected a safetensors file")
    try:
        header = json.loads(data[8 : 8 + length])
    except ValueError as error:
        raise ValueError("found a header that is not JSON; expected a safetensors file") from error
    return {name: entry for name, entry in sorted(header.items()) if name != "__metadata__"}, 8 + length


def _tensor(body: bytearray, entry: dict[str, Any], device: torch.device) -> torch.Tensor:
    start, end = entry["data_offsets"]
    if end > len(body):
        raise ValueError(f"found {len(body)} bytes of values; expected {end}: the safetensors file is cut off")
    values = torch.frombuffer(body, dtype=torch.uint8)[start:end] if end > start else torch.empty(0, dtype=torch.uint8)
    return values.clone().view(_DTYPES[entry["dtype"]]).reshape(entry["shape"]).to(device)
