"""`validate`: every check runs, a failing one is reported, and what the checks look at can fail."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import asapmodel as am
from asapmodel.cli.answers import validation_answer
from asapmodel.cli.entry import main
from asapmodel.reference import check_list
from asapmodel.reference.checks import Check, agreement, buffers, execute, out_of_order, same_requests
from asapmodel.reference.protocol_checks import every_interleaving, mistakes, processes, random_interleavings
from asapmodel.reference.random_systems import draw
from asapmodel.verbs.validate import Validation


def failing() -> tuple[bool, str]:
    return False, "something else"


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (Check("buffers", buffers), Check("made to fail", failing))
    monkeypatch.setattr(check_list, "CHECKS", checks)


@pytest.mark.parametrize(
    "ask",
    [
        buffers,
        lambda: agreement("asap", [3], 10),
        lambda: agreement("sync", [3], 10),
        lambda: out_of_order(range(4), 20),
        lambda: random_interleavings(range(8)),
        every_interleaving,
        mistakes,
        lambda: processes([3], 4),
    ],
)
def test_checks_pass(ask: Callable[[], tuple[bool, str]]) -> None:
    passed, found = ask()
    assert passed, found


def test_other_costs_are_noticed() -> None:
    drawn = draw("asap", 5, 10)
    found = execute(drawn)
    assert same_requests(drawn, found)[0] <= 1e-9
    attention = replace(drawn.costs.attention, fixed=1.01 * drawn.costs.attention.fixed)
    slower = replace(drawn, costs=replace(drawn.costs, attention=attention))
    assert same_requests(slower, found)[0] > 1e-6


def test_other_weights_are_noticed() -> None:
    drawn = draw("sync", 5, 10)
    found = execute(drawn)
    weights = replace(drawn.model.weights, final_gain=1.001 * drawn.model.weights.final_gain)
    other = replace(drawn, model=replace(drawn.model, weights=weights))
    assert same_requests(other, found)[1] > 1e-6


def test_a_failed_check_is_exit_status_1(two_checks: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is False
    assert [one["passed"] for one in answer["checks"]] == [True, False]
    assert answer["checks"][1]["found"] == "something else"
    assert main(["validate"]) == 1
    assert "Failed: made to fail." in capsys.readouterr().out


def test_progress_names_every_check(two_checks: None) -> None:
    told: list[str] = []
    answer = am.validate(progress=told.append)
    assert told == ["buffers", "made to fail"]
    assert not answer.passed
    assert all(np.isfinite(one.seconds) for one in answer.outcomes)


def test_table_of_success() -> None:
    passed = Check("buffers", buffers).run()
    assert "All 1 checks passed." in str(validation_answer(Validation((passed,)))[-1])


@pytest.mark.slow
def test_validate_as_a_user_types_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
