"""Batches cut by tokens among the devices of a group: the hardest slice by hand, by enumeration, and in lockstep."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from asapmodel.systems.slices import hardest_slice

NOTHING = Affine(0.0, 0.0)
WORK = LayerCosts(Quadratic(0.0, 0.0, 1.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1)
CUT = Policy(routing="round_robin", chunk_tokens=64, batch_window=0.0, context_parallel=True)


def work_of(prompts: list[int], before: int, tokens: int, width: int) -> float:
    requests = make_requests(np.zeros(len(prompts)), np.array(prompts))
    follow = np.append(np.arange(1, len(prompts)), -1)
    return float(hardest_slice(requests, follow, 0, before, tokens, width))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 50))
def test_the_hardest_slice_token_by_token(prompts: list[int], width: int) -> None:
    """A token behind `q` others is a piece of one token, `1 + 2 q`; slices are sums over so many in a row."""
    before = int(np.random.default_rng(len(prompts) + width).integers(0, prompts[0]))
    tokens = [1 + 2 * q for k, s in enumerate(prompts) for q in range(before if k == 0 else 0, s)]
    slices = [sum(tokens[k : k + width]) for k in range(0, len(tokens), width)]
    assert work_of(prompts, before, len(tokens), width) == max(slices)


def test_closed_forms_of_a_prompt_and_a_chunk() -> None:
    """`(2 - 1/T) s**2`, and for `c` tokens behind `q` others `(2 - 1/T) c**2 + 2 c q`."""
    devices = 8
    assert devices * work_of([160], 0, 160, 20) == (2 - 1 / devices) * 160**2
    assert devices * work_of([400], 240, 160, 20) == (2 - 1 / devices) * 160**2 + 2 * 160 * 240


def ends(policy: Policy, prompts: list[int], groups: int = 1, devices: int = 4) -> list[float]:
    layout = Layout("sync", groups, devices, groups * devices)
    outcome = run(layout, policy, WORK, make_requests(np.zeros(len(prompts)), np.array(prompts))).outcome
    return [float(x) for x in outcome.end]


def test_steps_take_as_long_as_their_hardest_slice() -> None:
    """Slices of 16 tokens: the last of the prompt, 16**2 + 2 x 16 x 48; without slices the whole, 64**2."""
    assert ends(replace(CUT, context_parallel=False), [64]) == [64.0**2]
    assert ends(CUT, [64]) == [4 * (16.0**2 + 2 * 16 * 48)]
    # Two prompts in one batch: the hardest slice is the end of the longer one, wherever it lies.
    assert ends(CUT, [16, 48]) == ends(CUT, [48, 16]) == [4 * (16.0**2 + 2 * 16 * 32)] * 2


def test_padding_lays_a_small_batch_on_the_first_devices() -> None:
    """32 tokens beside 64 of eight short prompts: two slices of 16 paced by the second, where alone it is four of 8."""
    layout, requests = Layout("sync", 2, 4, 8), make_requests(np.zeros(9), np.array([32] + [8] * 8))
    policy = replace(CUT, routing="least_work")
    ends = [run(layout, replace(policy, pad_groups=on), WORK, requests).outcome.end.tolist() for on in (False, True)]
    assert ends == [[4 * (8.0**2 + 2 * 8 * 24)] * 9, [4 * (16.0**2 + 2 * 16 * 16)] * 9]


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=8), st.sampled_from([1, 2, 8]))
def test_slices_cost_between_the_even_share_and_all_of_it(prompts: list[int], devices: int) -> None:
    """One device has no slices; more are never faster than an even share, nor slower than one device with all."""
    even = np.array(ends(replace(CUT, context_parallel=False), prompts, devices=devices))
    cut = np.array(ends(CUT, prompts, devices=devices))
    assert np.all(cut >= even * (1 - 1e-12))
    assert np.all(cut <= devices * even * (1 + 1e-12))
    if devices == 1:
        np.testing.assert_allclose(cut, even)
