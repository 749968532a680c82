"""Work that is not on the harness's stream: shown by holding that stream, calling the step, and looking at what got done.

In a check the harness has poisoned what a step may answer in, so whatever is there while the stream is held got there past it. Timed
calls are looked at without that: an answer to new inputs that is there, bit for bit, before the step has run was not made on its stream.
Work that waits for the held stream, on which this does not wait for it, is seen by the clock: see `tail.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import torch

from common.python.child.device.helpers import device_helpers
from common.python.child.device.streams import stream_past_the_hold
from common.python.child.distributed import Together
from common.python.child.sides.compare import copy_bits, same_bits
from common.python.child.sides.host_memory import bytes_of
from common.python.pairs.workload import Spec

_LEAST_HOLD_S, _MOST_HOLD_S = 0.2, 1.0
_HOLD_CALLS = 10.0
_LOOK_AFTER_S = 0.005
_LOOK_WITHIN_S = 0.1
_TELLING_BYTES = 3  # by which the answers to two seeds must differ, or the same answer again may be chance: a float32 has as many

Take = Callable[[object], dict[str, torch.Tensor]]
Tensors = Mapping[str, torch.Tensor]


class HeldCall:
    """One call of a step on a held stream; `known` are tensors that it may answer in, as the call finds them.

    The stream is held for ten times as long as `call_s`, the seconds of a call that was waited for: to queue a step takes less, unless it
    waits for the device, and then the whole hold. Streams of several ranks are let go when all have queued the step and the copy behind it.

    returned   what the step returned
    behind     its outputs as a copy found them that stood behind the step on its stream: what was not done by then does not count
    escaped    outputs whose values were there although the stream on which they belong was held
    """

    def __init__(
        self, step: Callable[[], object], take: Take, specs: Mapping[str, Spec], known: Tensors, call_s: float, together: Together
    ) -> None:
        self._before = {tensor.data_ptr(): tensor.clone() for tensor in known.values()}
        early, behind = _room(specs), _room(specs)
        helpers, gate = device_helpers(), together.gate
        elsewhere = stream_past_the_hold()
        torch.cuda.synchronize()
        helpers.block(int(1e9 * min(max(_LEAST_HOLD_S, _HOLD_CALLS * call_s), _MOST_HOLD_S)), gate)
        try:
            self.returned = step()
            taken = take(self.returned)
            _copy(behind, taken)  # queued while nothing runs, so that nothing has time to be done between step and copy
            looked = _looked_from(elsewhere, early, taken)
            together.meet()
        finally:
            if gate:
                gate.open()
            helpers.release()
            torch.cuda.synchronize()
        self.behind = {name: behind[name] for name in taken}
        # A step that waits for the device outlasts the hold: nothing is learnt from it here.
        tells = looked and not helpers.expired
        self.escaped = [name for name, tensor in taken.items() if tells and self._was_there(early[name], tensor)]

    def _was_there(self, early: torch.Tensor, final: torch.Tensor) -> bool:
        if final.data_ptr() in self._before:
            return not same_bits(early, self._before[final.data_ptr()])
        return same_bits(early, final)


class TimedLook:
    """What looks at timed calls need, made before the first: no step can tell by the allocator that one is to come.

    `kept` names those of the answers that a step need not write anew, an input or a state: they tell nothing.
    """

    def __init__(self, specs: Mapping[str, Spec], kept: Collection[str]) -> None:
        self.behind = _room(specs)
        self._early, self._other = _room(specs), _room(specs)
        self._telling = [name for name in specs if name not in kept]
        self._elsewhere = stream_past_the_hold()
        self._is_of_two = self._was_held = False

    def remember(self, taken: Tensors) -> None:
        """Keep the answers to another seed; none are known before the first call."""
        _copy(self._other, taken)
        self._is_of_two = bool(taken)

    def take(self, taken: Tensors, *, held: bool) -> None:
        """Queue copies of the answers `taken` of a timed call behind it, on its stream.

        If `held`, the stream does not run yet, and another stream first copies what the answers' memory holds before the call.
        """
        _copy(self.behind, taken)
        self._was_held = held and _looked_from(self._elsewhere, self._early, taken)

    def changed(self, taken: Tensors) -> bool:
        """Whether anything of that call's answers became another behind it; to be asked when all is done."""
        return not all(same_bits(self.behind[name], tensor) for name, tensor in taken.items())

    def escaped(self) -> list[str]:
        """The outputs of that call that were there before it ran; to be asked when all is done."""
        if not (self._is_of_two and self._was_held):
            return []
        early, behind, other = self._early, self.behind, self._other
        return [name for name in self._telling if same_bits(early[name], behind[name]) and _tell(behind[name], other[name])]


def _room(specs: Mapping[str, Spec]) -> dict[str, torch.Tensor]:
    return {name: torch.empty(spec.shape, dtype=spec.dtype, device="cuda") for name, spec in specs.items()}


def _copy(room: Tensors, taken: Tensors) -> None:
    for name, tensor in taken.items():
        copy_bits(room[name], tensor)


def _looked_from(elsewhere: torch.cuda.Stream, early: Tensors, taken: Tensors) -> bool:
    """Copy what is there on another stream, when work that nothing holds has had its time; whether that was done before the hold ended.

    It is not where the step has a stream of its own wait for the held one, and the driver gave that and `elsewhere` one queue.
    """
    time.sleep(_LOOK_AFTER_S)
    done = torch.cuda.Event()
    with torch.cuda.stream(elsewhere):
        _copy(early, taken)
        done.record()
    deadline = time.monotonic() + _LOOK_WITHIN_S
    while not (looked := bool(done.query())) and time.monotonic() < deadline:
        time.sleep(0.0)
    return looked


def _tell(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two answers differ by so much that one is not the other by chance."""
    first, second = (bytes_of(tensor) for tensor in (one, other))
    return int((first != second).sum()) >= _TELLING_BYTES
