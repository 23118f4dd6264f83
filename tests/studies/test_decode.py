"""The study of decode: costs by hand, closed forms against the graph engine, comparisons, and the page."""

import re
from pathlib import Path

import numpy as np
import pytest

from asapmodel.models import attention
from asapmodel.studies.decode import page
from asapmodel.studies.decode_cases import Case, best_split, crossover, draw_case, prefill_variation, within
from asapmodel.studies.decode_figure import decode_figure
from asapmodel.studies.decode_layers import asynchronous_layer, followed, lockstep_layer, merged_layer, single_layer
from asapmodel.studies.pages import save_figure

BANDWIDTH = 1.6e12 * 0.841


@pytest.fixture(scope="module")
def case() -> Case:
    return draw_case(4, 1.0)


def test_contexts_are_read(case: Case) -> None:
    """128 bytes of indexer key for each token, 1,152 of latent for at most 2,048."""
    contexts = np.array([100.0, 2048.0, 50_000.0])
    expected = (128 * contexts + 1152 * np.minimum(contexts, 2048)) / BANDWIDTH
    assert case.free.context_s(contexts) == pytest.approx(expected, rel=1e-12)
    assert case.free.context_s(contexts).tolist() == case.lockstep.context_s(contexts).tolist()


def test_reading_takes_longer_than_computing(case: Case) -> None:
    """Else the catalogue's law, which only computes, would do."""
    free = case.free
    parts = (free.architecture, free.device, free.profile, free.split)
    for s in (512.0, 4096.0, 65536.0):
        computing = attention.prompt_time(*parts, s, s - 1)
        assert computing < free.context_s(np.array([s]))[0]


def test_weights_are_read_once(case: Case) -> None:
    expected = (374.2e6 / 4 + 27.9e6) / 2 / BANDWIDTH
    assert case.free.weights_s == pytest.approx(expected, rel=2e-3)
    assert case.free.attention_s(8, 0.0) == pytest.approx(1e-4 + case.free.weights_s)
    assert case.free.attention_s(8, 3e-4) == pytest.approx(4e-4 + case.free.weights_s)


def test_experts_have_a_plateau(case: Case) -> None:
    one, few, many = (case.free.experts_s(n) for n in (1, 500, 1000))
    assert few == pytest.approx(many, rel=1e-3)
    assert one < 0.2 * few  # one token reads nine experts of 257
    assert case.free.experts_s(40_000) == pytest.approx(2 * case.free.experts_s(20_000))


def test_memory_is_full_with_the_most_sequences(case: Case) -> None:
    """78,080 bytes of cache a token, on each device of the group."""
    for costs, weights in ((case.free, 4.93e9), (case.lockstep, 4.93e9 + 9 * 44.04e6 * 58)):
        each = costs.most_sequences(4000.0) / costs.layout.D * 4000 * 78_080
        assert each + weights == pytest.approx(64e9, rel=2e-3)


@pytest.mark.parametrize("total", [64, 760, 12_000])
def test_equal_contexts_are_exact(case: Case, total: int) -> None:
    """Nothing varies: the closed forms are the graph engine's answer, but for whole stand-in tokens."""
    equal = np.full(5, 8000.0)
    assert followed(case.lockstep, total, equal) == pytest.approx(
        lockstep_layer(case.lockstep, total, equal).cycle_s, rel=1e-5
    )
    layer = asynchronous_layer(case.free, total, equal)
    assert followed(case.free, total, equal) == pytest.approx(layer.cycle_s, rel=2e-3)
    assert layer.limit == ("experts" if total < 5000 else "group")
    single = single_layer(case.free, total, equal)
    assert followed(case.free, total, equal, batches=1) == pytest.approx(single.cycle_s, rel=2e-3)


def test_drawn_contexts_are_close(case: Case) -> None:
    for total in (96, 760):
        expected = lockstep_layer(case.lockstep, total, case.contexts).cycle_s
        assert followed(case.lockstep, total, case.contexts) == pytest.approx(expected, rel=0.03)


def test_asynchrony_does_not_pay_and_calls_are_why(case: Case) -> None:
    for total in (64, 256, 760):
        free = asynchronous_layer(case.free, total, case.contexts)
        lockstep = lockstep_layer(case.lockstep, total, case.contexts)
        assert free.cycle_s > 2 * lockstep.cycle_s
        assert free.limits["experts"] == pytest.approx(8 * free.experts_s)
        assert lockstep.limits["barrier"] < 0.05 * lockstep.cycle_s
        assert lockstep.cycle_s < merged_layer(case.free, total, case.contexts).cycle_s < free.cycle_s


def test_searches_find_what_they_look_for(case: Case) -> None:
    found = within(case.free, asynchronous_layer, case.contexts, 0.1)
    assert 61 * asynchronous_layer(case.free, found, case.contexts).cycle_s == pytest.approx(0.1, rel=1e-3)
    assert within(case.free, asynchronous_layer, case.contexts, 0.001) == 0
    assert within(case.free, asynchronous_layer, case.contexts, 9.0) == case.free.most_sequences(case.contexts.mean())
    assert best_split(case, 0.1)[0] >= found
    assert crossover(case) == float("inf")


def test_prefill_varies_more(case: Case) -> None:
    each = case.free.context_s(case.contexts)
    assert prefill_variation() > 10 * each.std() / each.mean() / np.sqrt(95)


def test_page_and_figure(case: Case, tmp_path: Path) -> None:
    text = page([case, draw_case(4, 8.0), case])
    assert not re.search(r"[{}]", text)
    assert len(re.findall(r"\| asynchronous \| \d", text)) == 3
    assert "16,384 sequences" in text
    save_figure(decode_figure([case, case]), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
