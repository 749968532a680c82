"""What an example imports: the nouns in which a workload is stated."""

from common.python.pairs.workload import Metric, Precision, Spec, Workload

__all__ = ["Metric", "Precision", "Spec", "Workload"]
