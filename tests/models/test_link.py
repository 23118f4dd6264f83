from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.models import host, link
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Split

GIVEN = paper_deployment()
ARCHITECTURE, DEVICE, PROFILE, SPLIT = GIVEN


def test_asynchronous_coefficients_by_hand() -> None:
    law = link.asynchronous(*GIVEN)
    port, copy = 196e9 * 0.9, 1.6e12 * 0.84
    assert law["dispatch_send"] == pytest.approx((2e-5, 8 * 7680 / 4 / port))
    assert law["dispatch_recv"] == pytest.approx((1e-5, 8 * 7680 / 16 / port))
    assert law["combine_send"] == pytest.approx((2e-5, 8 * 14336 / 16 / port))
    assert law["combine_recv"] == pytest.approx((1e-5, 2 * 8 * 14336 / 4 / copy))


def test_the_smaller_side_is_the_bottleneck() -> None:
    few = link.asynchronous(*GIVEN[:3], Split(D=4, T=4, E=2))
    many = link.asynchronous(*GIVEN)
    assert few["dispatch_send"].per_token == pytest.approx(2 * many["dispatch_send"].per_token)
    assert few["combine_send"].per_token == pytest.approx(8 * many["combine_send"].per_token)
    wide = link.asynchronous(*GIVEN[:3], Split(D=4, T=4, E=64))  # more experts' devices than receivers
    assert wide["combine_send"].per_token == pytest.approx(many["combine_send"].per_token)


def test_synchronous_coefficients_by_hand() -> None:
    law = link.synchronous(*GIVEN)
    port = 196e9 * 0.5
    assert law["dispatch_send"] == pytest.approx((1e-4, 8 * 7680 / 4 / port))
    assert law["combine_send"] == pytest.approx((1e-4, 8 * 14336 / 4 / port))
    assert law["dispatch_recv"] == law["combine_recv"] == pytest.approx((1e-5, 0.0))


@given(st.floats(1, 1e5))
def test_affine_laws_are_their_expressions(n: float) -> None:
    for expressions, laws in (
        (link.asynchronous_expressions(), link.asynchronous(*GIVEN)),
        (link.synchronous_expressions(), link.synchronous(*GIVEN)),
    ):
        for name, expression in expressions.items():
            law = laws[name]
            assert law.fixed + law.per_token * n == pytest.approx(float(evaluate(expression, *GIVEN, n=n)))


def test_dispatch_of_512_tokens_is_below_a_tenth_of_a_millisecond() -> None:
    assert float(link.async_dispatch_time(*GIVEN, 512)) < 1e-4  # sec. 5.4


def test_the_papers_63_mb_and_its_formula_disagree() -> None:
    stated = float(link.dispatch_bytes(1024, ARCHITECTURE, PROFILE))
    printed = float(link.dispatch_bytes_as_printed(1024, ARCHITECTURE, SPLIT))
    assert stated == 62_914_560
    assert stated / 1e6 == pytest.approx(63, abs=0.5)
    assert printed == 1024 * 7168 * 16
    assert printed / stated == pytest.approx(1.87, abs=0.01)


def test_p2p_by_hand() -> None:
    profile = replace(PROFILE, p2p_receiver_delay=3e-6)
    expected = 12 * 13e-6 + 1024 * 8 * 7680 / 4 / (196e9 * 0.15)
    assert float(link.p2p_time(ARCHITECTURE, DEVICE, profile, SPLIT, 1024, receivers=12)) == pytest.approx(expected)
    n = np.array([512.0, 2048.0])
    assert np.all(np.diff(link.p2p_time(*GIVEN, n)) > 0)


@given(st.floats(49.1e-6, 300e-6), st.integers(1, 64))
def test_fitted_p2p_has_the_ratios(latency: float, receivers: int) -> None:
    profile = replace(PROFILE, send_latency=latency)
    fit = link.fit_p2p(ARCHITECTURE, DEVICE, profile, SPLIT, receivers=receivers)
    fitted = replace(profile, p2p_handshake=fit.per_receiver, p2p_receiver_delay=0.0, p2p_link=fit.link)
    given = (ARCHITECTURE, DEVICE, fitted, SPLIT)
    for tokens, ratio in ((1024, 4.0), (8192, 5.8)):
        blocking = float(link.p2p_time(*given, tokens, receivers=receivers))
        assert blocking / float(link.async_dispatch_time(*given, tokens)) == pytest.approx(ratio)


def test_p2p_ratios_that_cannot_hold_are_refused() -> None:
    # A ratio that rises from 4.0 to 5.8 needs an async latency of 0.55 of its transfer time at 1k tokens.
    transfer = 1024 * link.asynchronous(*GIVEN)["dispatch_send"].per_token
    assert transfer * 0.5497 == pytest.approx(49e-6, rel=0.01)
    with pytest.raises(ValueError, match="send_latency"):
        link.fit_p2p(*GIVEN)
    with pytest.raises(ValueError, match="send_latency"):
        link.fit_p2p(ARCHITECTURE, DEVICE, replace(PROFILE, send_latency=0.549 * transfer), SPLIT)
    link.fit_p2p(ARCHITECTURE, DEVICE, replace(PROFILE, send_latency=0.551 * transfer), SPLIT)


def test_host_dispatch() -> None:
    assert host.total(ARCHITECTURE, PROFILE) == pytest.approx(0.0134, rel=5e-3)  # sec. 5.5.3
    assert host.exposed(PROFILE, order_known=True) == 0
    assert host.exposed(PROFILE, order_known=False) == 220e-6


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="link_bandwidth"):
        link.asynchronous(ARCHITECTURE, replace(DEVICE, link_bandwidth=0.0), PROFILE, SPLIT)
    with pytest.raises(ValueError, match="receivers"):
        link.p2p_time(*GIVEN, 1024, receivers=0)
