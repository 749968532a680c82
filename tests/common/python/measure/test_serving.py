"""What a sweep of loads shares: shapes that differ in their load alone, and the saturation that loads are shares of."""

from common.python.measure.serving import saturations_in, unloaded
from common.python.results import ServingFigures
from tests.support.factories import a_timing


def served(load, requests=96, saturation_per_s=40.0):
    figures = ServingFigures(
        slo_ttft_ms=200.0, slo_tpot_ms=10.0, figures={}, offered_per_s=load * 40.0 or None, saturation_per_s=saturation_per_s
    )
    return a_timing().model_copy(update={"shape": {"requests": requests, "arrival_poisson": load}, "serving": figures})


def test_shapes_that_differ_in_their_load_alone_are_one():
    assert unloaded({"requests": 96, "arrival_poisson": 0.5}) == unloaded({"arrival_poisson": 0.8, "requests": 96})
    assert unloaded({"requests": 96, "arrival_poisson": 0.5}) != unloaded({"requests": 48, "arrival_poisson": 0.5})


def test_a_saturation_is_known_by_the_shape_but_for_its_load():
    timings = [served(0.5), served(0.8), served(0.8, requests=48, saturation_per_s=30.0), served(0.0, 24, None), a_timing()]
    assert saturations_in(timings) == {(("requests", 96),): 40.0, (("requests", 48),): 30.0}
