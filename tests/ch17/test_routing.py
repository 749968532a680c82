"""Which engine the routers of chapter 17 choose."""

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT
from common.serving.engines import Load

choose = import_file(PROJECT_ROOT / "ch17/optimized_dynamic_routing.py").choose
ByCost = import_file(PROJECT_ROOT / "ch17/optimized_routing_static.py").ByCost


def test_the_least_work_takes_the_request():
    assert choose(100, [Load(1, 300, 0), Load(0, 0, 2), Load(0, 0, 3)]) == 1


def test_a_long_prompt_shuns_running_answers():
    loads = [Load(1, 300, 0), Load(0, 0, 2)]
    assert choose(256, loads) == 1
    assert choose(257, loads) == 0


def test_an_engine_with_a_full_queue_is_left_out_while_another_is_not():
    loads = [Load(10, 10, 0), Load(1, 9000, 0)]
    assert choose(100, loads) == 1
    assert choose(100, [Load(10, 10, 0), Load(10, 9000, 0)]) == 0
    assert choose(100, loads, queue_max=11) == 0


def test_a_class_stays_home_until_home_is_dearer_by_far_and_away_until_both_are_level():
    route = ByCost(leave=256, back=0)
    assert route(300, [Load(), Load(1, 128, 0)]) == 1
    assert route(300, [Load(), Load(1, 129, 0)]) == 0
    assert route(300, [Load(), Load(0, 0, 1)]) == 0
    assert route(300, [Load(0, 0, 1), Load(0, 0, 1)]) == 1
    assert route(20, [Load(), Load()]) == 0
