"""What an example imports: the nouns in which a workload is stated."""

from common.python.pairs.serving import Request, Serving, Slo, Traffic
from common.python.pairs.workload import Metric, Precision, Spec, Workload

__all__ = ["Metric", "Precision", "Request", "Serving", "Slo", "Spec", "Traffic", "Workload"]
