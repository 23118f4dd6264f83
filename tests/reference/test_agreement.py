"""The reference system against the graph engine, and against the monolithic pass: the same times, the same tensors."""

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.engines.graph import run
from asapmodel.reference.asynchronous import VirtualRun, run_asynchronous
from asapmodel.reference.random_systems import Drawn
from asapmodel.reference.synchronous import run_synchronous
from asapmodel.systems.arrays import make_requests
from tests.reference.strategies import asynchronous, synchronous


def execute(drawn: Drawn) -> VirtualRun:
    """Run the system in virtual time."""
    runner = run_synchronous if drawn.layout.kind == "sync" else run_asynchronous
    return runner(drawn.model, drawn.layout, drawn.policy, drawn.costs, drawn.prompts)


def check(drawn: Drawn) -> None:
    """Starts and ends to 1e-9 s of every request, final hidden states to 1e-10."""
    found = execute(drawn)
    requests = make_requests(
        np.array([one.arrival for one in drawn.prompts]),
        np.array([one.tokens for one in drawn.prompts]),
        np.array([one.cached for one in drawn.prompts]),
    )
    outcome = run(drawn.layout, drawn.policy, drawn.costs, requests).outcome
    times = np.array([found.journal.times()[one.index] for one in drawn.prompts])
    np.testing.assert_allclose(times[:, 0], outcome.start, rtol=0, atol=1e-9)
    np.testing.assert_allclose(times[:, 1], outcome.end, rtol=0, atol=1e-9)
    outputs = found.journal.outputs()
    for prompt in drawn.prompts:
        np.testing.assert_allclose(outputs[prompt.index], drawn.model.truth(prompt), rtol=0, atol=1e-10)


@settings(max_examples=25)
@given(asynchronous(12))
def test_asynchronous(drawn: Drawn) -> None:
    check(drawn)


@settings(max_examples=25)
@given(synchronous(12))
def test_synchronous(drawn: Drawn) -> None:
    check(drawn)


@pytest.mark.slow
@settings(max_examples=200)
@given(asynchronous(40))
def test_asynchronous_at_length(drawn: Drawn) -> None:
    check(drawn)


@pytest.mark.slow
@settings(max_examples=200)
@given(synchronous(40))
def test_synchronous_at_length(drawn: Drawn) -> None:
    check(drawn)
