"""What is drawn to be run again: nothing of it accepts, and another seed draws others."""

import pytest

from tools.campaign.again import again, main
from tools.campaign.plan import read_plan

PLAN = """55 each peak --device cuda
60 alone run -t ch08:ilp_pytorch --accept-regressions --gate 12 --profile minimal
40 run -t ch06:add --accept
300 run -t ch14:regional_compile --accept --timeout-multiplier 3
20 run -t ch01:gemm
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "some.plan"
    path.write_text(PLAN)
    return path


def test_all_that_is_accepted_is_run_without_accepting(plan):
    assert [str(task) for task in again(read_plan(plan), 1.0, 0)] == [
        "55 each peak --device cuda",
        "300 run -t ch14:regional_compile --timeout-multiplier 3",
        "60 alone run -t ch08:ilp_pytorch --gate 12",
        "40 run -t ch06:add",
    ]


def test_a_seed_draws_the_same_rows_and_another_seed_others(plan):
    drawn = [[task.words for task in again(read_plan(plan), 0.3, seed)[1:]] for seed in range(20)]
    assert drawn == [[task.words for task in again(read_plan(plan), 0.3, seed)[1:]] for seed in range(20)]
    assert all(len(words) == 1 for words in drawn)
    assert len({words[0] for words in drawn}) == 3


def test_the_plan_is_printed_as_a_campaign_reads_it(plan, capsys, tmp_path):
    assert main([str(plan), "--share", "0.5", "--seed", "3"]) == 0
    (printed := tmp_path / "again.plan").write_text(capsys.readouterr().out)
    assert read_plan(printed) == again(read_plan(plan), 0.5, 3)


@pytest.mark.parametrize(
    ("text", "share", "says"),
    [(PLAN, "1.5", "--share 1.5: found more than 1"), ("20 run -t ch01:gemm\n", "0.2", "found no run that accepts")],
)
def test_bad_input_is_one_sentence(plan, capsys, text, share, says):
    plan.write_text(text)
    assert main([str(plan), "--share", share]) != 0
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
