"""Collectives in which the busiest device counts: by hand, its limits, and its chord against the exact maximum."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.models import collectives, link
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.imbalance import expected_maximum, imbalance
from asapmodel.models.parameters import Profile, Split

ARCHITECTURE, DEVICE, BALANCED, _ = paper_deployment()
UNEVEN = replace(BALANCED, expert_load_cv=2.0)
SPLIT = Split(D=8, T=4, E=32)
BYTES = 8 * (7680 + 14336)  # of a token, dispatch and combine

shares = st.floats(0.05, 1.0)
profiles = st.builds(
    lambda link, whole, v: replace(BALANCED, link=link, collective_link=whole, expert_load_cv=v),
    shares,
    shares,
    st.floats(0.0, 3.0),
)
splits = st.builds(lambda D, T: Split(D, T, D * T), st.integers(1, 16), st.integers(1, 8))


def moves(profile: Profile, split: Split) -> float:
    """Of the senders, both collectives, s a token of the largest group."""
    law = collectives.contended(ARCHITECTURE, DEVICE, profile, split)
    return law["dispatch_send"].per_token + law["combine_send"].per_token


def added(profile: Profile, split: Split) -> float:
    return collectives.busiest(ARCHITECTURE, DEVICE, profile, split)


def test_coefficients_by_hand() -> None:
    law = collectives.contended(ARCHITECTURE, DEVICE, UNEVEN, SPLIT)
    assert law["dispatch_send"] == pytest.approx((1e-4, 8 * 7680 / 4 / (196e9 * 0.9)))
    assert law["combine_send"] == pytest.approx((1e-4, 8 * 14336 / 4 / (196e9 * 0.9)))
    assert law["dispatch_recv"] == law["combine_recv"] == pytest.approx((1e-5, 0.0))
    chi = 1 + 2.0 * expected_maximum(32) / np.sqrt(8)
    assert added(UNEVEN, SPLIT) == pytest.approx((chi / 0.5 - 1 / 0.9) * BYTES / (32 * 196e9))


@given(st.floats(1, 1e5))
def test_affine_laws_are_their_expressions(n: float) -> None:
    given = (ARCHITECTURE, DEVICE, UNEVEN, SPLIT)
    laws = collectives.contended(*given)
    for name, expression in collectives.contended_expressions().items():
        assert laws[name].fixed + laws[name].per_token * n == pytest.approx(float(evaluate(expression, *given, n=n)))
    whole = evaluate(collectives.busiest_expression(), *given, n=n, chi=imbalance(*given))
    assert collectives.busiest(*given) * n == pytest.approx(float(whole))


def test_balanced_experts_and_one_share_are_the_senders_law() -> None:
    """To the last bit: nothing is left of the busiest device."""
    same = replace(BALANCED, link=BALANCED.collective_link)
    given = (ARCHITECTURE, DEVICE, same, SPLIT)
    assert collectives.busiest(*given) == 0.0
    assert collectives.contended(*given) == link.synchronous(*given)


@given(profiles, splits)
def test_senders_pay_the_share_of_one_sided_writes(profile: Profile, split: Split) -> None:
    assert moves(profile, split) == pytest.approx(BYTES / (split.T * DEVICE.link_bandwidth * profile.link))


@given(profiles, splits, st.floats(1.0, 1e5), st.floats(0.0, 1.0))
def test_the_chord_of_the_exact_law(profile: Profile, split: Split, largest: float, place: float) -> None:
    """Equal groups: the slower of sender and busiest device; less company: never below, within the stated error."""
    chi = imbalance(ARCHITECTURE, DEVICE, profile, split)

    def exact(fill: float) -> float:
        sender = largest / (split.T * profile.link)
        busiest = chi * fill * split.D * largest / (split.E * profile.collective_link)
        return BYTES / DEVICE.link_bandwidth * max(sender, busiest)

    def model(fill: float) -> float:
        return moves(profile, split) * largest + added(profile, split) * fill * split.D * largest

    assert model(1.0) == pytest.approx(exact(1.0))
    fill = 1 / split.D + place * (1 - 1 / split.D)
    worst = min(profile.collective_link / (chi * profile.link), 1.0)
    assert exact(fill) * (1 - 1e-12) <= model(fill) <= exact(fill) * (2 - worst) * (1 + 1e-12)


def test_the_stated_error_is_reached() -> None:
    chi = imbalance(ARCHITECTURE, DEVICE, UNEVEN, SPLIT)
    worst = 0.5 / (chi * 0.9)
    sender = moves(UNEVEN, SPLIT)  # where both take as long
    assert (sender + added(UNEVEN, SPLIT) * worst * SPLIT.D) / sender == pytest.approx(2 - worst)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="link_bandwidth"):
        collectives.busiest(ARCHITECTURE, replace(DEVICE, link_bandwidth=0.0), UNEVEN, SPLIT)
