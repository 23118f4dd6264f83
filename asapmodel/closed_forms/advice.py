"""The numbers that a planner wants from the closed forms, for one scenario.

Batches are those that the scheduler forms from a backlog of the lengths; phases are means over them, so the bound on
the saturation throughput is that of the whole mix: for the paper's traffic the engine reaches 76 to 90 % of it, since
unlike batches wait for one another. Everything else takes a batch of mean size for all. Some 30 evaluations of
compiled formulas: about 10 ms once they are compiled.
"""

import math

import numpy as np
from numpy.typing import NDArray

from asapmodel.closed_forms.catalogue import BY_NAME
from asapmodel.closed_forms.pair import pair_bound, pair_cycle
from asapmodel.closed_forms.saturation import prompt_rate, saturation
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.models.imbalance import expected_maximum
from asapmodel.policy import Layout, Policy
from asapmodel.typical import backlog_batches

__all__ = ["of_scenario"]

Floats = NDArray[np.float64]
Values = dict[str, float]
Advice = dict[str, float | str]

_WANTED = 0.9  # efficiency of the experts
_LITTLE = 0.05  # share of throughput that is not worth a wait
_LETTERS = ("A", "t1", "t2", "M", "t4", "t5")


def of_scenario(
    costs: LayerCosts, layout: Layout, policy: Policy, lengths: Floats, synchronous: LayerCosts | None = None
) -> Advice:
    """Evaluate the closed forms for a system and its prompts.

    Parameters
    ----------
    costs, layout, policy
        The system.
    lengths : float array
        Equally likely prompt lengths, tokens, nothing cached.
    synchronous : LayerCosts, optional
        Costs of a synchronous system on as many devices, for the break-even; without them the asynchronous system's
        transfers are taken to block, and its experts to be spread over all devices.

    Returns
    -------
    dict
        Tokens, seconds, requests/s and shares by name; ``limited_by`` is a word. Of a synchronous system the entries
        on experts and on the variability of batches.

    Raises
    ------
    ValueError
        No lengths, or one that is not positive.
    """
    if lengths.size == 0 or not np.all(lengths > 0):
        raise ValueError(f"lengths must be positive, got {lengths!r}: give equally likely prompt lengths in tokens")
    batches = backlog_batches(layout, policy, lengths)
    law = _law(costs, exposed_host_dispatch(layout, policy, costs))
    found: Advice = {
        "inflection_tokens": _number("inflection", law),
        "tokens_for_90_percent": _number("tokens_for_efficiency", {**law, "eta": _WANTED}),
    }
    if layout.kind == "sync":
        cv = _variability(law, lengths, float(batches.mean()) / layout.D)["c_B"]
        return found | {"batch_cv": cv, "barrier_excess": cv * expected_maximum(layout.D)}
    batch = _mean_batch(costs, policy, layout, lengths, batches, law)
    found |= {"batch_tokens": batch["n"], "batch_prompts": batch["k"]}
    found |= _throughput(batch, policy)
    found |= _dual(batch, law, policy)
    found |= _exclusive(costs, policy, lengths, law)
    found |= _split(batch, layout, law)
    varies = _variability(law, lengths, batch["n"])
    found |= _break_even(batch, costs, layout, policy, varies, synchronous)
    return found | _host(batch, costs, law)


def _number(name: str, values: Values) -> float:
    return float(BY_NAME[name].numeric(**values))


def _law(costs: LayerCosts, host: float) -> Values:
    """Coefficients of the layer as lines in the tokens; per-token parts of the group without attention work."""
    a, send, receive = costs.attention, costs.dispatch_send, costs.dispatch_recv
    back, end = costs.combine_send, costs.combine_recv
    return {
        "a0": a.fixed,
        "a1": a.per_token,
        "a2": a.per_token2,
        "g0": a.fixed + send.fixed + end.fixed,
        "g1": a.per_token + send.per_token + end.per_token,
        "o0": receive.fixed + back.fixed,
        "o1": receive.per_token + back.per_token,
        "m0": costs.moe.floor,
        "m1": costs.moe.per_token,
        "h": host,
    }


def _mean_batch(
    costs: LayerCosts, policy: Policy, layout: Layout, lengths: Floats, batches: Floats, law: Values
) -> Values:
    """Letters of the mean batch: its phases, tokens, prompts, group and way, layers and slots."""
    per_token = float((lengths**2).sum() / lengths.sum())
    phases = costs.phases(batches, per_token * batches, law["h"])
    values = {letter: float(np.mean(time)) for letter, time in zip(_LETTERS, phases, strict=True)}
    n = float(batches.mean())
    dense = costs.dense_layer
    values |= {
        "n": n,
        "q": per_token,
        "k": n / float(lengths.mean()),
        "G": values["A"] + values["t1"] + values["t5"],
        "O": values["t2"] + values["M"] + values["t4"],
        "D": float(layout.D),
        "N_s": float(policy.slots),
        "L": float(costs.moe_layers),
        "F": costs.dense_layers * float(dense(n, per_token * n)) + costs.step_overhead,
    }
    return values


def _throughput(batch: Values, policy: Policy) -> Advice:
    """Saturation bound in requests/s and what limits."""
    form = prompt_rate(policy.overlap_moe, policy.overlap_attention)
    return {"saturation_rps": float(form.numeric(**batch)), "limited_by": form.regime(**batch)}


def _dual(batch: Values, law: Values, policy: Policy) -> Advice:
    streams = (policy.overlap_moe, policy.overlap_attention)
    cycle = pair_cycle(*streams)
    if cycle.holds(**batch):
        period = float(cycle.numeric(**batch))
    else:
        twin = {f"{letter}_b": batch[letter] for letter in _LETTERS}
        period = float(pair_bound(*streams).numeric(**batch, **twin))
    line = {**law, "g1": law["g1"] + law["a2"] * batch["q"], "n": batch["n"] / 2}
    return {
        "dual_gain": 2 * (batch["G"] + batch["O"]) / period,
        "halving_gain": _number("halving_gain", line),
    }


def _exclusive(costs: LayerCosts, policy: Policy, lengths: Floats, law: Values) -> Advice:
    """Thresholds against a partner of `min_batch_tokens` of prompts that are not exclusive."""
    short = lengths[lengths <= policy.exclusive_tokens]
    if short.size == 0:
        short = lengths
    n = float(max(policy.min_batch_tokens, 1))
    A, t1, t2, M, t4, t5 = costs.phases(n, n * float((short**2).sum() / short.sum()), law["h"])
    values = {**law, "G_b": A + t1 + t5, "O_b": t2 + M + t4, "epsilon": _LITTLE}
    ends = {"mean_ttft": "delay", "throughput": "saving"}
    found: Advice = {}
    for goal, form in ends.items():
        order = "_partner_first" if form == "delay" else ""
        names = [f"exclusive_{form}_{limit}{order}" for limit in ("group", "lone")]
        found[f"exclusive_tokens_{goal}"] = min(_threshold(name, values) for name in names)
    return found


def _threshold(name: str, values: Values) -> float:
    """The length of a form; infinite without quadratic work, 0 where its condition holds at any length."""
    if values["a2"] == 0:
        return math.inf
    form = BY_NAME[name]
    return float(form.numeric(**values)) if form.holds(**values) else 0.0


def _split(batch: Values, layout: Layout, law: Values) -> Advice:
    """Best real and whole number of groups for the same devices and T."""
    N, T = layout.devices, layout.T
    values = {
        "G": batch["G"],
        "K_E": layout.E * (batch["M"] - law["h"]),
        "N": float(N),
        "T": float(T),
        "h": law["h"],
    }
    best = _number("best_groups", values)
    near = [D for D in (math.floor(best), math.ceil(best)) if D >= 1 and D * T < N]
    whole = max(near, key=lambda D: min(D / values["G"], 1 / (values["K_E"] / (N - D * T) + values["h"])), default=0)
    return {"best_groups": best, "best_D": float(whole), "best_E": float(N - whole * T)}


def _variability(law: Values, lengths: Floats, n: float) -> Values:
    """Variation of a group's attention and standard deviation of its tokens, in batches of about `n` tokens.

    Batches longer than the prompt met at random hold many prompts and are filled; shorter ones are few independent
    prompts. For the lengths of the paper the first is 6 % low at 27,000 tokens, the second 9 to 15 % high at 7,000.
    """
    total, mean = float(lengths.sum()), float(lengths.mean())
    q, u = float((lengths**2).sum()) / total, float((lengths**3).sum()) / total
    spread = _number("filled_variance", {"q": q, "u": u})
    values = {**law, "n": n, "q": q, "mu": mean, "k": n / mean, "v": q / mean, "V_n": spread}
    values["V_r"] = float(np.var(lengths**2 - q * lengths))
    values["V_a"] = float(np.var(law["a1"] * lengths + law["a2"] * lengths**2))
    form = "batch_cv_tokens" if n > q else "batch_cv_prompts"
    return {"c_B": _number(form, values), "tokens": math.sqrt(spread)}


def _break_even(
    batch: Values, costs: LayerCosts, layout: Layout, policy: Policy, varies: Values, synchronous: LayerCosts | None
) -> Advice:
    """Variation of attention at which a synchronous system on as many devices saturates alike, and the actual one."""
    groups = layout.devices // layout.T
    n = batch["n"]
    if groups < 2:
        return {"batch_cv": varies["c_B"]}
    if synchronous is None:
        blocking, spread = costs, layout.E / layout.devices
    else:
        blocking, spread = synchronous, 1.0
    transfers = (blocking.dispatch_send, blocking.dispatch_recv, blocking.combine_send, blocking.combine_recv)
    largest = n + expected_maximum(groups) * varies["tokens"]
    bound = saturation(policy.overlap_moe, policy.overlap_attention)
    values = {
        "A_m": float(blocking.attention(n, batch["q"] * n)),
        "tau": sum(float(one(largest)) for one in transfers),
        "M_s": spread * float(blocking.moe(groups * n)),
        "D": float(groups),
        "k": batch["k"],
        "X_a": batch["k"] * float(bound.numeric(**batch)),
        "kappa_D": expected_maximum(groups),
    }
    return {"batch_cv": varies["c_B"], "break_even_cv": _number("break_even_cv", values)}


def _host(batch: Values, costs: LayerCosts, law: Values) -> Advice:
    """What the host dispatch of the scenario costs without the super kernel; a lone batch hides none of it."""
    values = {**batch, "M": batch["M"] - law["h"], "h": costs.host_dispatch}
    free = BY_NAME["dispatch_free"]
    hidden = float(free.numeric(**values)) if batch["N_s"] == 2 and free.holds(**values) else 0.0
    return {
        "host_dispatch_loss": _number("dispatch_loss", values),
        "host_dispatch_free_s": hidden,
        "host_dispatch_ttft_s": _number("dispatch_ttft", values),
    }
