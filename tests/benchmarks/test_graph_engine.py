"""Speed of the graph engine; `make bench` runs these, `make test` skips the timing and runs each once."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import asapmodel as am
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.evaluate import prepare

READY = prepare(am.Scenario.load("paper-asap"))


@pytest.mark.parametrize("rate", [4.0, 18.0])
def test_paper_asap(benchmark: BenchmarkFixture, rate: float) -> None:
    """300 s of the paper's asynchronous system; `extra_info` has task completions per second."""
    requests = READY.requests(rate)
    run = benchmark(READY.run, requests)
    benchmark.extra_info["tasks"] = run.tasks
    if benchmark.stats is not None:
        benchmark.extra_info["tasks_per_s"] = run.tasks / benchmark.stats.stats.median
        benchmark.extra_info["requests_per_s"] = len(requests.arrival) / benchmark.stats.stats.median


def test_many_groups(benchmark: BenchmarkFixture) -> None:
    """32 groups: the cost of a task grows with the logarithm of the resources."""
    short = {"max_prompt_tokens": 4096, "max_batch_tokens": 4096}  # or the buffers of 32 groups would not fit
    ready = prepare(am.Scenario.load("paper-asap").replace(D=32, E=64, **short))
    run = benchmark(ready.run, ready.requests(40.0))
    benchmark.extra_info["tasks"] = run.tasks
    if benchmark.stats is not None:
        benchmark.extra_info["tasks_per_s"] = run.tasks / benchmark.stats.stats.median


def test_synchronous(benchmark: BenchmarkFixture) -> None:
    """300 s of ChunkedPrefill at 10 requests/s."""
    ready = prepare(am.Scenario.load("paper-chunked"))
    benchmark(ready.run, ready.requests(10.0))


@pytest.mark.slow
def test_a_million_requests(benchmark: BenchmarkFixture) -> None:
    """One long replay at a stable rate."""
    rng = np.random.default_rng(1)
    arrival = np.cumsum(rng.exponential(size=1_000_000)) / 14.0
    prompt = READY.requests(18.0).prompt
    requests = make_requests(arrival, prompt[rng.integers(0, len(prompt), size=1_000_000)])
    run = benchmark.pedantic(  # type: ignore[no-untyped-call]
        READY.run, args=(requests,), rounds=1, iterations=1
    )
    benchmark.extra_info["tasks"] = run.tasks
