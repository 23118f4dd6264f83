from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.models import moe
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Split

GIVEN = paper_deployment()
ARCHITECTURE, DEVICE, PROFILE, SPLIT = GIVEN


def test_flop_per_token_of_section_2() -> None:
    assert float(evaluate(moe.flop_per_token(), ARCHITECTURE)) == pytest.approx(792.7e6, rel=1e-4)
    assert pytest.approx(4.836e10, rel=5e-4) == 61 * 6 * 7168 * 2048 * 9  # Step-3's table


@pytest.mark.parametrize(("E", "experts"), [(16, 17), (32, 9)])
def test_plateau_by_hand(E: int, experts: int) -> None:
    law = moe.reduce(ARCHITECTURE, DEVICE, PROFILE, Split(D=4, T=4, E=E))
    assert law.floor == pytest.approx(experts * 3 * 7168 * 2048 / (1.6e12 * 0.84))
    assert law.per_token == pytest.approx(6 * 7168 * 2048 * 9 / E / (752e12 * 0.4))
    assert law.inflection_tokens == pytest.approx(law.floor / law.per_token)


def test_exact_time_follows_the_plateau_law() -> None:
    law = moe.reduce(*GIVEN)
    n = np.array([1.0, 32.0, 128.0, 1000.0, law.inflection_tokens, 8192.0, 32768.0])
    exact = moe.batch_time(*GIVEN, n)
    reduced = np.maximum(law.floor, law.per_token * n)
    assert np.all(exact <= reduced * (1 + 1e-12))
    assert np.all(exact[2:] >= 0.98 * reduced[2:])
    np.testing.assert_allclose(exact[-2:], reduced[-2:])
    assert exact[1] / reduced[1] == pytest.approx(0.66, abs=0.005)  # said in the docstring


def test_one_token_reads_its_own_experts() -> None:
    read = float(evaluate(moe.read_expression(), *GIVEN, n=1)) * 1.6e12 * 0.84
    assert read == pytest.approx((8 / 16 + 1) * 3 * 7168 * 2048)  # 8 of 256 experts over 16 devices


@given(st.floats(1, 1e5), st.floats(1, 1e5))
def test_time_does_not_fall_with_tokens(n: float, more: float) -> None:
    a, b = moe.batch_time(*GIVEN, [n, n + more])
    assert a <= b


@pytest.mark.parametrize(("count", "maximum"), [(1, 0.0), (2, 0.56419), (3, 0.84628), (16, 1.76599), (32, 2.06967)])
def test_expected_maxima_of_normals(count: int, maximum: float) -> None:
    assert moe.expected_maximum(count) == pytest.approx(maximum, abs=6e-6)


def test_expected_maximum_of_many() -> None:
    # For a large N the maximum lies near the quantile 1 - 1/N; the known value for 1000 is 3.2414.
    assert moe.expected_maximum(1000) == pytest.approx(3.2414, abs=1e-4)


def test_imbalance_against_simulation() -> None:
    v, E = 0.3, 16
    rng = np.random.default_rng(7)
    loads = rng.normal(1.0, v, size=(20000, E, ARCHITECTURE.routed_experts // E)).mean(axis=2)
    expected = moe.imbalance(ARCHITECTURE, DEVICE, replace(PROFILE, expert_load_cv=v), SPLIT)
    assert expected == pytest.approx(loads.max(axis=1).mean(), abs=1e-3)


def test_imbalance_averages_out_over_layers() -> None:
    profile = replace(PROFILE, expert_load_cv=1.0)
    one = moe.imbalance(ARCHITECTURE, DEVICE, profile, SPLIT)
    many = moe.imbalance(ARCHITECTURE, DEVICE, profile, SPLIT, layers=58)
    assert many - 1 == pytest.approx((one - 1) / 58**0.5)


def test_imbalance_multiplies_arithmetic_only() -> None:
    uneven = (ARCHITECTURE, DEVICE, replace(PROFILE, expert_load_cv=0.5), SPLIT)
    factor = moe.imbalance(*uneven)
    assert moe.imbalance(*GIVEN) == 1.0
    assert factor == pytest.approx(1 + 0.5 / 4 * 1.76599, abs=1e-5)
    assert moe.reduce(*uneven).floor == moe.reduce(*GIVEN).floor
    assert moe.reduce(*uneven).per_token == pytest.approx(factor * moe.reduce(*GIVEN).per_token)


def test_imbalance_grows_with_devices() -> None:
    profile = replace(PROFILE, expert_load_cv=0.3)
    factors = [moe.imbalance(ARCHITECTURE, DEVICE, profile, Split(D=1, T=1, E=E)) for E in (1, 4, 16, 64)]
    assert factors[0] == 1.0
    assert factors == sorted(factors)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="count"):
        moe.expected_maximum(0)
    with pytest.raises(ValueError, match="tokens"):
        moe.batch_time(*GIVEN, 0)
    with pytest.raises(ValueError, match="grouped_gemm"):
        moe.reduce(ARCHITECTURE, DEVICE, replace(PROFILE, grouped_gemm=-0.1), SPLIT)


@given(st.floats(0, 200), st.sampled_from([8, 16, 32, 64]))
def test_padding_moves_the_inflection(padding: float, E: int) -> None:
    """At n* reading and multiplying take equally long; r_x rows an expert are r_x E_total/K tokens."""
    split = Split(D=4, T=4, E=E)
    padded = replace(PROFILE, tile_padding=padding)
    n = float(evaluate(moe.inflection_expression(), ARCHITECTURE, DEVICE, padded, split, chi=1))
    plain = float(evaluate(moe.inflection_expression(), ARCHITECTURE, DEVICE, PROFILE, split, chi=1))
    assert n == pytest.approx(plain - padding * 256 / 8, abs=1e-6 * plain)


@given(st.lists(st.floats(200, 60000), min_size=1, max_size=30), st.floats(0, 150))
def test_reduction_on_batches_keeps_their_total_time(batches: list[float], padding: float) -> None:
    given_ = (ARCHITECTURE, DEVICE, replace(PROFILE, tile_padding=padding), SPLIT)
    n = np.array(batches)
    law = moe.reduce(*given_, batches=n)
    total = np.maximum(law.floor, law.per_token * n).sum()
    assert total >= moe.batch_time(*given_, n).sum() * (1 - 1e-9)
    if law.per_token > moe.reduce(*given_).per_token:
        assert total == pytest.approx(moe.batch_time(*given_, n).sum())
