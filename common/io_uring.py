"""Linux's io_uring, by its system calls: many reads in flight from one thread, in two rings that the process shares with the kernel."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

import numpy as np
import numpy.typing as npt

_SETUP, _ENTER = 425, 426  # numbers of the system calls, the same on x86-64 and aarch64
_PARAMS_BYTES = 120  # of struct io_uring_params
_SQ_OFFSETS, _CQ_OFFSETS = 40, 80  # in it: where head, tail, mask, ... lie in the rings
_SQ_RING, _CQ_RING, _ENTRIES = 0, 0x8000000, 0x10000000  # what mmap of the ring's descriptor gives, by offset
_WAIT = 1  # IORING_ENTER_GETEVENTS
_READ = 22  # IORING_OP_READ

# struct io_uring_sqe and struct io_uring_cqe
_REQUEST = np.dtype(
    {
        "names": ["opcode", "fd", "offset", "address", "length"],
        "formats": ["u1", "<i4", "<u8", "<u8", "<u4"],
        "offsets": [0, 4, 8, 16, 24],
        "itemsize": 64,
    }
)
_ANSWER = np.dtype([("tag", "<u8"), ("result", "<i4"), ("flags", "<u4")])

_system_call = ctypes.CDLL(None, use_errno=True).syscall


class Ring:
    """Reads with at most `depth` in flight, a power of two. Raises OSError where the kernel refuses io_uring."""

    def __init__(self, depth: int) -> None:
        params = ctypes.create_string_buffer(_PARAMS_BYTES)
        self._descriptor = _checked(_system_call(_SETUP, depth, params))
        words = np.frombuffer(params.raw, dtype="<u4")
        self._depth, answers = int(words[0]), int(words[1])
        _, sq_tail, _, _, _, _, sq_array, _ = words[_SQ_OFFSETS // 4 :][:8].tolist()
        cq_head, cq_tail, _, _, _, cqes, _, _ = words[_CQ_OFFSETS // 4 :][:8].tolist()
        asked = self._mapped(_SQ_RING, sq_array + 4 * self._depth)
        answered = self._mapped(_CQ_RING, cqes + _ANSWER.itemsize * answers)
        self._sq_tail = np.frombuffer(asked, "<u4", 1, sq_tail)
        self._cq_head, self._cq_tail = np.frombuffer(answered, "<u4", 1, cq_head), np.frombuffer(answered, "<u4", 1, cq_tail)
        self._answers = np.frombuffer(answered, _ANSWER, answers, cqes)
        self._requests = np.frombuffer(self._mapped(_ENTRIES, _REQUEST.itemsize * self._depth), _REQUEST, self._depth)
        np.frombuffer(asked, "<u4", self._depth, sq_array)[:] = np.arange(self._depth)
        self._requests["opcode"] = _READ

    def _mapped(self, offset: int, size: int) -> mmap.mmap:
        return mmap.mmap(self._descriptor, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=offset)

    def read(self, descriptor: int, offsets: npt.NDArray[np.int64], into: npt.NDArray[np.uint8]) -> None:
        """Read a record of `into`, a uint8 array (records, bytes), at each of `offsets` (records,) of the file open at `descriptor`.

        Raises OSError for a read that fails, and for one that the end of the file cuts short.
        """
        records, length = into.shape
        addresses = into.ctypes.data + np.arange(records, dtype=np.uint64) * np.uint64(length)
        self._requests["fd"], self._requests["length"] = descriptor, length
        begun = done = 0
        while done < records:
            more = min(records - begun, self._depth - (begun - done))
            slots = (int(self._sq_tail[0]) + np.arange(more)) % self._depth  # the kernel has taken all that was there
            self._requests["offset"][slots] = offsets[begun : begun + more]
            self._requests["address"][slots] = addresses[begun : begun + more]
            self._sq_tail[0] += np.uint32(more)
            begun += more
            self._enter(more, min(begun - done, self._depth // 4))
            done += self._reap(length)

    def _enter(self, more: int, least: int) -> None:
        """Hand `more` requests to the kernel and wait until `least` are answered."""
        while (taken := _system_call(_ENTER, self._descriptor, more, least, _WAIT, None, 0)) < 0:
            if ctypes.get_errno() != errno.EINTR:
                _checked(taken)
        if taken != more:
            raise OSError(errno.EAGAIN, f"io_uring took {taken} of {more} requests")

    def _reap(self, length: int) -> int:
        """How many requests were answered since the last call."""
        head, tail = int(self._cq_head[0]), int(self._cq_tail[0])
        answered = (tail - head) % 2**32
        results = self._answers["result"][(head + np.arange(answered)) % len(self._answers)]
        self._cq_head[0] = tail
        if answered and (worst := int(results.min())) != length:
            raise OSError(max(-worst, 0), os.strerror(-worst) if worst < 0 else f"io_uring read {worst} bytes of {length}")
        return answered

    def close(self) -> None:
        """Give the rings back to the kernel."""
        os.close(self._descriptor)


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned
