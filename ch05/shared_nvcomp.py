"""nvCOMP's batched decompression, by its C interface: one call for all chunks, on torch's current stream."""

import ctypes

import torch

SMS, ENGINE = 2, 1  # NVCOMP_DECOMPRESS_BACKEND_CUDA and _HARDWARE
_NAMES = {"lz4": "LZ4", "snappy": "Snappy", "deflate": "Deflate"}


class _Options(ctypes.Structure):
    """What the options of all three formats have in common: 64 bytes, the backend first, and zeros for the defaults of the others."""

    _fields_ = (("backend", ctypes.c_int), ("others", ctypes.c_char * 60))


class Decompressor:
    """Decompresses `chunks` chunks into rows of `restored` (chunks, row), on `backend`. Raises RuntimeError where nvCOMP refuses."""

    def __init__(self, compression, restored, backend):
        from nvidia import libnvcomp  # an optional package

        library, name = libnvcomp.load_library(), f"nvcompBatched{_NAMES[compression]}Decompress"
        self._run, self._options = library[f"{name}Async"], _Options(backend)
        chunks, row = len(restored), restored[0].nbytes
        total, needed = ctypes.c_size_t(chunks * row), ctypes.c_size_t()
        arguments = (ctypes.c_size_t(chunks), ctypes.c_size_t(row), self._options, ctypes.byref(needed), total, _stream(restored))
        _check(f"{name}GetTempSize", library[f"{name}GetTempSize"](*arguments))
        device = restored.device
        self._temporary = torch.empty(max(needed.value, 1), dtype=torch.uint8, device=device)
        self._rows = restored.data_ptr() + row * torch.arange(chunks, device=device)
        self._room = torch.full((chunks,), row, device=device)
        self._found = torch.empty(chunks, dtype=torch.int64, device=device)
        self.statuses = torch.empty(chunks, dtype=torch.int32, device=device)

    def __call__(self, addresses, sizes):
        """Start to decompress what lies at `addresses`, `sizes` bytes each, both int64 (chunks,) on the device."""
        pointers = [ctypes.c_void_p(each.data_ptr()) for each in (addresses, sizes, self._room, self._found)]
        temporary = (ctypes.c_void_p(self._temporary.data_ptr()), ctypes.c_size_t(len(self._temporary)))
        rows, statuses = (ctypes.c_void_p(each.data_ptr()) for each in (self._rows, self.statuses))
        arguments = (*pointers, ctypes.c_size_t(len(sizes)), *temporary, rows, self._options, statuses, _stream(sizes))
        _check("Async", self._run(*arguments))


def _stream(tensor):
    return ctypes.c_void_p(torch.cuda.current_stream(tensor.device).cuda_stream)


def _check(call, status):
    if status:
        raise RuntimeError(f"nvCOMP: {call} returned status {status}; expected 0")
