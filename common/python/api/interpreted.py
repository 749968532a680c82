"""Whether functions run Triton's kernels in its interpreter, which tells whether they are right and says nothing of their speed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.python.machine.description import asks_for_interpreter

_MODULE = "triton.runtime.interpreter"  # Triton imports it when it first makes a kernel that is interpreted


def may_interpret() -> bool:
    """Whether a kernel here may be interpreted: one was made so already, or the environment asks for it."""
    return _MODULE in sys.modules or asks_for_interpreter()


@contextmanager
def interpreted_launches() -> Iterator[list[str]]:
    """The kernels that Triton's interpreter runs in the block: one entry a launch, or one in all where the block itself made them."""
    launches: list[str] = []
    module: Any = sys.modules.get(_MODULE)
    if module is None:
        yield launches
        launches += ["a kernel"] if _MODULE in sys.modules else []
        return
    call = module.GridExecutor.__call__

    def noted(executor: Any, *arguments: Any, **named: Any) -> Any:
        launches.append(str(executor.fn.__name__))
        return call(executor, *arguments, **named)

    module.GridExecutor.__call__ = noted
    try:
        yield launches
    finally:
        module.GridExecutor.__call__ = call
