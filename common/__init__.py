"""What an example imports: the nouns in which a workload is stated; and what times functions from Python, `compare` and `measure`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from common.python.pairs.serving import Request, Serving, Slo, Traffic
from common.python.pairs.workload import Metric, Precision, Spec, Workload

if TYPE_CHECKING:
    from common.python.api.compare import compare, measure

__all__ = ["Metric", "Precision", "Request", "Serving", "Slo", "Spec", "Traffic", "Workload", "compare", "measure"]

_WITH_TORCH = {"compare", "measure"}


def __getattr__(name: str) -> Any:
    """What times functions loads torch and all of the harness, so it is loaded when somebody asks for it."""
    if name in _WITH_TORCH:
        return getattr(import_module("common.python.api.compare"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
