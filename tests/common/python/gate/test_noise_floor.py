"""The noise floor is what A/A trials show, by class of step, and is kept for the gate."""

import json

import numpy as np
import pytest

from common.python.errors import BenchmarkError
from common.python.gate.noise_floor import (
    Floor,
    Noise,
    NoiseFloor,
    StepClass,
    Trial,
    class_of,
    floors_of,
    keep_noise,
    noise_path,
    read_noise,
    sentences,
)
from tests.support.factories import a_recorded_timing


def a_trial(percent, units=6):
    return Trial(target="noise:copy", logs=(np.log1p(percent / 100),) * units)


def a_noise_floor(**floors):
    fields = {"device": "NVIDIA Test", "driver": "580.1", "measured": "2026-01-02T03:04:05", "floors": floors}
    return NoiseFloor.model_validate(fields)


@pytest.mark.parametrize(
    ("clock", "ns", "step"),
    [
        ("device", 9_999.0, StepClass.SHORT),
        ("device", 10_000.0, StepClass.MIDDLE),
        ("device", 30_000.0, StepClass.LONG),
        ("launch", 5_000.0, StepClass.LAUNCH),
        ("host", 5_000.0, StepClass.HOST),
    ],
)
def test_a_step_is_classed_by_its_clock_and_then_by_its_length(clock, ns, step):
    assert class_of(clock, ns) is step


def test_the_floor_is_what_95_percent_of_the_trials_stay_within():
    forty = [a_trial(0.01 * number) for number in range(1, 41)]

    assert Floor.of(forty).percent == pytest.approx(0.38)
    assert Floor.of(forty[:3]).percent == pytest.approx(0.03)


def test_few_trials_have_the_floor_that_the_spread_of_their_units_makes():
    draws = np.random.default_rng(3)
    lucky = Trial(target="noise:copy", logs=(0.01, -0.01, 0.01, -0.01, 0.01, -0.01))  # a mean of nothing, by chance
    assert Floor.of([lucky]).percent == pytest.approx(2.57 * 1.095 / 6**0.5, rel=0.01)
    floors = [Floor.of([Trial(target="t", logs=tuple(draws.normal(0, 0.01, 6))) for _ in range(3)]).percent for _ in range(300)]
    within = np.mean(np.abs(draws.normal(0, 1 / 6**0.5, (300, 100))) <= np.array(floors)[:, None])
    assert within > 0.95
    assert np.median(floors) < 1.5 * 1.96 / 6**0.5
    assert Floor.of([a_trial(1.0)] * 19 + [lucky]).percent < 1.05  # twenty speak for themselves


def test_a_floor_is_as_far_from_no_change_on_either_side():
    assert Floor.of([a_trial(-0.2)]).percent == pytest.approx(0.2)


def test_the_deviation_of_a_unit_is_pooled_within_trials():
    draws = np.random.default_rng(5)
    offset = draws.normal(0, 0.05, 50)  # between trials: no part of it
    trials = [Trial(target="noise:copy", logs=tuple(draws.normal(mean, 0.003, 8))) for mean in offset]
    floor = Floor.of(trials)

    assert floor.degrees == 50 * 7
    assert floor.deviation == pytest.approx(0.003, rel=0.1)


def test_what_a_gate_sees_lies_beyond_the_band_by_an_interval():
    floor = Floor.of([Trial(target="noise:copy", logs=tuple(np.random.default_rng(1).normal(0, 0.0025, 24)))])

    assert 0.5 < floor.visible_percent(0.5) < 0.8
    assert floor.visible_percent(2.0) - floor.visible_percent(0.5) == pytest.approx(1.5)


def test_trials_of_one_class_make_one_floor():
    timings = [
        ("noise:a", a_recorded_timing(4e4, seed=1)),
        ("noise:b", a_recorded_timing(9e5, seed=2)),
        ("noise:c", a_recorded_timing(4e3)),
    ]
    floors = floors_of(timings)

    assert {step: [trial.target for trial in floor.trials] for step, floor in floors.items()} == {
        StepClass.SHORT: ["noise:c"],
        StepClass.LONG: ["noise:a", "noise:b"],
    }


def test_a_kept_floor_widens_the_band_of_its_class_alone(tmp_path):
    path = noise_path("GPU-1", tmp_path)
    keep_noise(path, a_noise_floor(**{StepClass.SHORT: Floor.of([a_trial(1.2), a_trial(-0.4)])}))
    noise = read_noise(path)

    assert path.name == "GPU-1.noise.json"
    assert noise.band_percent(0.5, StepClass.SHORT) == pytest.approx(1.2)
    assert noise.band_percent(2.0, StepClass.SHORT) == 2.0
    assert noise.band_percent(0.5, StepClass.LONG) == 0.5
    assert noise.known(StepClass.SHORT) is not None
    assert noise.known(StepClass.LONG) is None


def test_a_machine_without_trials_has_no_floor(tmp_path):
    assert read_noise(noise_path("cpu", tmp_path)) == Noise({})


def test_a_file_that_is_no_noise_floor_is_an_error(tmp_path):
    path = noise_path("cpu", tmp_path)
    path.write_text(json.dumps({"schema_version": 1, "floors": []}))

    with pytest.raises(BenchmarkError, match=r"cpu.noise.json: device: Field required"):
        read_noise(path)


def test_what_was_found_is_said_a_sentence_a_class():
    floor = a_noise_floor(**{StepClass.LONG: Floor.of([a_trial(0.21)]), StepClass.HOST: Floor.of([a_trial(3.0)])})

    assert [sentence.split("; ")[0] for sentence in sentences(floor, 0.5)] == [
        "30 µs and more: on this machine a gate of 0.5 % sees changes of 0.5 % and more",
        "host clock: on this machine a gate of 0.5 % sees changes of 3.0 % and more",
    ]
    assert sentences(floor, 0.5)[0].endswith(
        "95% of the times two sides of the same code differ by 0.21 % at the most, as the 6 units of 1 tell"
    )
    many = a_noise_floor(**{StepClass.LONG: Floor.of([a_trial(0.21)] * 20)})
    assert sentences(many, 0.5)[0].endswith("differ by 0.21 % at the most, in 20 trials")
