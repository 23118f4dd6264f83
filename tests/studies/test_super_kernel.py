"""The study of the super kernel: closed form by hand, thresholds, what must hold of the loss, and the page."""

import re
from pathlib import Path

import numpy as np
import pytest

from asapmodel.scenario import Scenario
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio
from asapmodel.studies.super_kernel import HOST_US, VARIANTS, Curve, closed_form_loss, measure, page, reached
from asapmodel.studies.super_kernel_figure import loss_figure

HOSTS = (0.0, 50.0, 220.0, 1000.0)
LETTERS = {"A": 4.0, "t1": 0.3, "t2": 0.2, "M": 1.0, "t4": 0.1, "t5": 0.5, "D": 4.0, "N_s": 2.0, "n": 1.0}
LETTERS |= {"L": 61.0, "k": 1.0, "F": 0.0}


@pytest.fixture(scope="module")
def paper() -> Curve:
    return measure(Scenario.load("paper-asap"), "2,048 tokens (paper)", HOSTS)


@pytest.fixture(scope="module")
def large() -> Curve:
    return measure(Scenario.load("paper-asap"), "8,192 tokens", HOSTS)


def test_closed_form_by_hand() -> None:
    """Groups ask for a batch every 1.2; experts of 1.0 + h are slower from h = 0.2 on."""
    host = np.array([0.0, 0.1, 0.2, 0.4, 1.4])
    assert closed_form_loss(LETTERS, host) == pytest.approx([0, 0, 0, 1 - 1.2 / 1.4, 0.5])


def test_threshold_is_interpolated() -> None:
    host, loss = np.array([0.0, 10.0, 30.0]), np.array([0.0, 0.01, 0.05])
    assert reached(host, loss, 0.03) == pytest.approx(20.0)
    assert reached(host, loss, 0.01) == pytest.approx(10.0)
    assert reached(host, loss, 0.06) == float("inf")


def test_dispatch_costs_at_once_and_ever_more(paper: Curve) -> None:
    assert paper.loss[0] == 0
    assert np.all(np.diff(paper.loss) > 0)
    assert paper.loss[1] > 0.005  # the closed form says nothing is lost yet
    assert paper.law[1] == 0
    assert 0.045 < paper.loss[2] < 0.07  # the paper: 6 %
    assert paper.loss[3] < paper.law[3]


def test_every_layer_of_a_lone_prompt_pays(paper: Curve) -> None:
    added = paper.ttft_s - paper.ttft_s[0]
    assert np.all(added[1:] > 0.98 * 61e-6 * np.array(HOSTS[1:]))
    assert added[2] == pytest.approx(61 * 220e-6, rel=0.1)


def test_large_batches_lose_less(paper: Curve, large: Curve) -> None:
    assert np.all(large.loss[1:] < 0.6 * paper.loss[1:])
    assert large.letters["n"] > paper.letters["n"]


def test_the_limit_is_within_its_bound(paper: Curve) -> None:
    assert np.all(paper.reach < 1.0)
    assert paper.reach[-1] > 0.93  # the pool alone
    assert paper.reach[0] < 0.9


def test_page_and_figure(tmp_path: Path) -> None:
    host = np.array(HOST_US)
    slo = 18.0 - 5e-3 * host
    law = closed_form_loss(LETTERS, 1e-6 * host)
    some = [Curve(n, kind, slo, 0.3 + 61e-6 * host, np.ones(10), law, LETTERS) for n, (kind, _) in VARIANTS.items()]
    text = page(some, dict.fromkeys((100.0, 220.0, 400.0, 1000.0), Ratio(0.9, 0.8, 0.95)))
    assert not re.search(r"[{}]", text)
    assert "**220 us cost 6.1% of the SLO throughput; the super kernel gains 6.5%** (+11.1% (+5.3% to +25.0%)" in text
    assert "grows by 13.4 ms" in text
    save_figure(loss_figure(some, HOST_US), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
