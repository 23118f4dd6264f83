"""Large spaces are screened roughly first; the front is that of full answers everywhere all the same."""

import numpy as np
import pandas as pd
import pytest

from asapmodel.engines.effort import ROUGH
from asapmodel.exploration import evaluation, explorer
from asapmodel.exploration.designs import Designs, designs_of
from asapmodel.exploration.evaluation import Task, evaluate
from asapmodel.exploration.objectives import add_derived, front_of, near_front
from asapmodel.exploration.space import Space
from asapmodel.exploration.table import points_table
from asapmodel.verbs.explore import explore

TEXT = """
scenario = ["paper-asap", "paper-chunked"]
objectives = ["slo_throughput_per_device", "devices"]
[vary]
D = [2, 4]
T = [4]
E = [12, 16, 20]
pairing = ["locked", "rolling"]
min_batch_tokens = [2048, 8192]
batch_window = ["0 s", "0.05 s"]
chunk_tokens = [8192]
[confirm]
top = 0
"""
TTFT = 'objectives = ["ttft_at_rate", "devices_for_rate"]\nrate = 9.0'


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every space were large."""
    monkeypatch.setattr(explorer, "FEW_POINTS", 0)


def full_front(space: Space, designs: Designs) -> set[int]:
    """The front of full answers for every point."""
    table = points_table(space, designs).merge(evaluate(Task(designs.groups, "full", space.rate)), on="point")
    return set(table.loc[front_of(add_derived(table), space.objectives), "point"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("[vary]", '[vary]\nslo.ttft = ["1.2 s"]'),
        TEXT.replace('objectives = ["slo_throughput_per_device", "devices"]', TTFT),
    ],
    ids=["paper's objective", "tight objective", "TTFT at a rate"],
)
def test_front_is_that_of_full_answers_everywhere(text: str) -> None:
    space = Space.parse(text)
    designs = designs_of(space)
    found = explore(space, workers=1)
    assert set(found.table.loc[found.table["on_front"], "point"]) == full_front(space, designs)
    assert {"rough", "full"} <= set(found.table["effort"])  # not simply everything was looked at again
    assert set(found.front["effort"]) == {"full"}


def test_rows_depend_on_the_point_alone() -> None:
    """However points are put together: nothing that they share changes an answer."""
    designs = designs_of(Space.parse(TEXT))
    together = evaluate(Task(designs.groups, "rough", 5.0))
    assert set(together["effort"]) == {"rough"}
    evaluation._rough_look.cache_clear()
    order = np.random.default_rng(3).permutation(designs.count).tolist()
    alone = pd.concat([evaluate(Task((designs.point(number),), "rough", 5.0)) for number in order])
    pd.testing.assert_frame_equal(alone.sort_values("point", ignore_index=True), together)


def test_an_answer_that_could_be_better_is_looked_at_again() -> None:
    """Against one full row: by how much a rough one may be worse and still be near."""
    table = pd.DataFrame(
        {
            "effort": ["full", "rough", "rough", "rough"],
            "devices": 8,
            "slo_throughput_rps": [10.0, 9.0, 9.5, np.nan],
            "slo_throughput_most_rps": [10.0, 9.9, 10.1, 10.1],
            "stability_limit_rps": 12.0,
            "rate_rps": 6.0,
            "ttft_at_rate_s": 1.0,
            "prompt_tokens_mean": 4000.0,
            "price": 1.0,
        }
    )
    names = ["slo_throughput_per_device"]
    assert near_front(add_derived(table), names).tolist() == [False, False, True, True]


def test_a_ttft_that_could_be_shorter_is_looked_at_again() -> None:
    """At half load: `y / b (1 - 1/2) / (1 - 1/(2 a))`; just beyond the limit anything; far beyond nothing."""
    a, b = ROUGH.limit_margin, ROUGH.time_margin
    least = 0.5 / (1.0 - 0.5 / a) / b
    table = pd.DataFrame(
        {
            "effort": ["full", "rough", "rough", "rough", "rough"],
            "devices": 8,
            "slo_throughput_rps": 5.0,
            "slo_throughput_most_rps": 5.0,
            "stability_limit_rps": [12.0, 12.0, 12.0, 5.9, 5.0],
            "rate_rps": 6.0,
            "ttft_at_rate_s": [1.0, 1.01 / least, 0.99 / least, np.nan, np.nan],
            "prompt_tokens_mean": 4000.0,
            "price": 1.0,
        }
    )
    assert near_front(add_derived(table), ["ttft_at_rate"]).tolist() == [False, False, True, True, False]
