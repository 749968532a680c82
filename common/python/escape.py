"""Work that is not on the harness's stream: shown by holding that stream, calling the step, and looking at what got done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

from common.python.device_helpers import device_helpers
from common.python.verification import copy_bits, same_bits
from common.python.workload import Spec

_LEAST_HOLD_S, _MOST_HOLD_S = 0.2, 1.0
_HOLD_CALLS = 10.0
_LOOK_AFTER_S = 0.005

Take = Callable[[object], dict[str, torch.Tensor]]


class HeldCall:
    """One call of a step on a held stream; `known` are tensors that it may answer in, as the call finds them.

    The stream is held for ten times as long as `call_s`, the seconds of a call that was waited for: to queue a step takes less, unless it
    waits for the device, and then the whole hold.

    returned   what the step returned
    behind     its outputs as a copy found them that stood behind the step on its stream: what was not done by then does not count
    escaped    outputs whose values were there although the stream on which they belong was held
    """

    def __init__(
        self, step: Callable[[], object], take: Take, specs: Mapping[str, Spec], known: Mapping[str, torch.Tensor], call_s: float
    ) -> None:
        self._before = {tensor.data_ptr(): tensor.clone() for tensor in known.values()}
        early, behind = ({name: torch.empty(spec.shape, dtype=spec.dtype, device="cuda") for name, spec in specs.items()} for _ in range(2))
        helpers = device_helpers()
        elsewhere = torch.cuda.Stream()
        torch.cuda.synchronize()
        helpers.block(int(1e9 * min(max(_LEAST_HOLD_S, _HOLD_CALLS * call_s), _MOST_HOLD_S)))
        try:
            self.returned = step()
            taken = take(self.returned)
            for name, tensor in taken.items():  # queued while nothing runs, so that nothing has time to be done between step and copy
                copy_bits(behind[name], tensor)
            time.sleep(_LOOK_AFTER_S)
            with torch.cuda.stream(elsewhere):
                for name, tensor in taken.items():
                    copy_bits(early[name], tensor)
            elsewhere.synchronize()
        finally:
            helpers.release()
            torch.cuda.synchronize()
        self.behind = {name: behind[name] for name in taken}
        # A step that waits for the device outlasts the hold: nothing is learnt from it here.
        self.escaped = [] if helpers.expired else [name for name, tensor in taken.items() if self._was_there(early[name], tensor)]

    def _was_there(self, early: torch.Tensor, final: torch.Tensor) -> bool:
        if final.data_ptr() in self._before:
            return not same_bits(early, self._before[final.data_ptr()])
        return same_bits(early, final)
