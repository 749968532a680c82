"""The process in which one library multiplies, run after run under other delays; it says where it is, and then what became of it."""

import ctypes
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from common.python.child.sides.compare import poison
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.errors import SideFailure
from tests.ch10.emulated import CHAPTER, is_right


@dataclass(frozen=True)
class Job:
    """Multiply `runs` times at each of the named shapes; a wait of `patience_s` seconds is a hang."""

    target: str
    source: str
    library: str
    shapes: dict
    runs: int
    patience_s: float


def tell(**said):
    """One line of what the parent reads."""
    print(json.dumps(said), flush=True)


class Child:
    """A library with its inputs on a GPU, one set a shape."""

    def __init__(self, job, device="cuda"):
        self._job = job
        self._device = torch.device(device)
        self._workload = load_workload(CHAPTER / f"workload_{job.target}.py")
        self._disturb = ctypes.CDLL(job.library).disturb
        self._disturb.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64]
        self._gave_up = torch.zeros(1, dtype=torch.int32, pin_memory=device == "cuda")  # where kernels can write

    def run(self):
        """All runs, until one is not right."""
        ready = {}
        for name, shape in self._job.shapes.items():
            side = load_side(Path(self._job.source), self._workload, Path(self._job.library))
            inputs = Inputs(self._workload, shape, 1, self._device, Path(self._job.library).parent)
            ready[name] = (inputs, side, side.prepare(inputs.values, shape))
        for run in range(1, self._job.runs + 1):
            for name, prepared in ready.items():
                tell(run=run, shape=name)
                try:
                    right = self._is_right(run, *prepared)
                except (SideFailure, RuntimeError) as failure:
                    tell(found="TIMEOUT" if self._gave_up[0] else "CRASHED", note=str(failure).splitlines()[0])
                    return
                if not right:
                    tell(found="WRONG_RESULT")
                    return
        tell(found="SURVIVED", gpu=torch.cuda.get_device_name())

    def _is_right(self, run, inputs, side, step):
        """Whether the product is right; with values of their own for each run, what an earlier one left is wrong."""
        inputs.rewrite(run)
        for tensor in side.workspace():
            poison(tensor)
        if code := self._disturb(run, self._gave_up.data_ptr(), int(self._job.patience_s * 1e9)):
            raise RuntimeError(f"disturb returned {code}; expected 0")
        (c,) = step()
        torch.cuda.synchronize()
        return is_right(self._workload, c, inputs.values)


if __name__ == "__main__":
    Child(Job(**json.loads(sys.argv[1]))).run()
