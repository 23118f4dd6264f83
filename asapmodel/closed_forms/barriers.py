"""When barriers cost more than disaggregation: the variability of attention at which both systems saturate alike.

A lockstep layer takes as long as the slowest of D groups. For independent, nearly normal attention times of mean A_m
and coefficient of variation c_B that is ``A_m (1 + c_B kappa_D)``, kappa_D the expected largest of D standard normals.
The rest of the layer - blocking transfers, experts on all groups' tokens - comes after it and overlaps with nothing.
The asynchronous system pays no maximum, but gives devices to experts alone.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.notation import letters

__all__ = [
    "BARRIER_FORMS",
    "batch_cv_prompts",
    "batch_cv_tokens",
    "break_even_cv",
    "filled_tokens",
    "filled_variance",
    "largest_normal",
    "lockstep_rate",
    "slowest_group",
    "unexplained_lognormal",
    "variance_lognormal",
]

_SECTION = "Break-even of the two systems"
_NORMAL = "independent groups, attention of a batch nearly normal"
_ERROR = "normal law: 2 % low for sums of 16 exponential times, 11 % for one; see the section"


@cache
def largest_normal() -> ClosedForm:
    """Expected largest of D standard normals, ``D int x phi(x) Phi(x)^(D-1) dx`` (0 for D = 1)."""
    (D,) = letters("D")
    x = sympy.Symbol("x", real=True)
    density = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)
    below = (1 + sympy.erf(x / sympy.sqrt(2))) / 2
    return ClosedForm(
        "largest_normal",
        "expected largest of D standard normals",
        r"\kappa_D",
        "1",
        D * sympy.Integral(x * density * below ** (D - 1), (x, -sympy.oo, sympy.oo)),
        "exact",
        "independent standard normals",
        _SECTION,
    )


@cache
def slowest_group() -> ClosedForm:
    """Expected attention of the slowest group, ``A_m (1 + c_B kappa_D)``."""
    A_m, c_B, kappa_D = letters("A_m c_B kappa_D")
    return ClosedForm(
        "slowest_group",
        "mean attention of the slowest of D groups",
        r"E \max_g A_g",
        "s",
        A_m * (1 + c_B * kappa_D),
        "approximation",
        _NORMAL,
        _SECTION,
        _ERROR,
    )


@cache
def batch_cv_prompts() -> ClosedForm:
    """Variation of a batch of k independent prompts: ``sqrt(k V_a)`` over its mean attention."""
    a0, a1, a2, k, mu, v, V_a = letters("a0 a1 a2 k mu v V_a")
    return ClosedForm(
        "batch_cv_prompts",
        "variation of a group's attention, k prompts a batch",
        "c_B",
        "1",
        sympy.sqrt(k * V_a) / (a0 + k * (a1 * mu + a2 * mu**2 * v)),
        "exact",
        "k independent prompts a batch",
        _SECTION,
    )


@cache
def filled_tokens() -> ClosedForm:
    """Mean tokens of a batch filled with whole prompts up to n_max, ``n_max - q/2``.

    The prompt that no longer fits is one met at random along the line of all tokens, hence longer than the mean: its
    length has density ``s f(s) / mu``, and n_max cuts it at a uniform place. What is left free is its part before the
    cut: mean ``E s^2 / (2 E s) = q/2``, mean square ``E s^3 / (3 E s)``.
    """
    n_max, q = letters("n_max q")
    return ClosedForm(
        "filled_tokens",
        "mean tokens of a batch of whole prompts within n_max",
        "n",
        "token",
        n_max - q / 2,
        "approximation",
        "independent prompts, many in n_max tokens, lengths without a lattice",
        _SECTION,
        "log-normal: 1 % low at q = 0.31 n_max, 4 % low at 0.41; equal prompts: their lattice decides",
        domain=q < 2 * n_max,
    )


@cache
def filled_variance() -> ClosedForm:
    """Variance of those tokens, ``u/3 - q^2/4`` with ``u = E s^3 / E s``; see `filled_tokens`."""
    u, q = letters("u q")
    return ClosedForm(
        "filled_variance",
        "variance of the tokens of a batch of whole prompts within n_max",
        "V_n",
        "token^2",
        u / 3 - q**2 / 4,
        "approximation",
        "as for filled_tokens",
        _SECTION,
        "log-normal: standard deviation 9 % high at q = 0.41 n_max; equal prompts: it does not vary at all",
        domain=4 * u >= 3 * q**2,
    )


@cache
def batch_cv_tokens() -> ClosedForm:
    """Variation of a batch filled up to a number of tokens, by renewal theory.

    ``sum s^2 = q sum s + sum (s^2 - q s)`` with ``q = E s^2 / E s``. The second sum has about ``n / mu`` independent
    terms of mean 0, hence variance ``V_r n / mu``; the first varies with the tokens, by V_n. Exact in the limit of
    many prompts, where the two are uncorrelated.
    """
    a0, a1, a2, n, mu, q, V_r, V_n = letters("a0 a1 a2 n mu q V_r V_n")
    own, tokens = a2**2 * V_r * n / mu, (a1 + a2 * q) ** 2 * V_n
    return ClosedForm(
        "batch_cv_tokens",
        "variation of a group's attention, batches filled up to a number of tokens",
        "c_B",
        "1",
        sympy.sqrt(own + tokens) / (a0 + a1 * n + a2 * q * n),
        "approximation",
        "many independent prompts in a batch, lengths without a lattice",
        _SECTION,
        "log-normal: within 10 %; see the section for few prompts and for two lengths",
    )


@cache
def variance_lognormal() -> ClosedForm:
    """Variance of the attention of a prompt of log-normal length: ``E s^j = mu^j v^(j (j-1)/2)``."""
    a1, a2, mu, v = letters("a1 a2 mu v")
    own = a1**2 * mu**2 * (v - 1) + 2 * a1 * a2 * mu**3 * (v**3 - v) + a2**2 * mu**4 * (v**6 - v**2)
    return ClosedForm(
        "attention_variance_lognormal",
        "variance of a prompt's attention, log-normal lengths",
        "V_a",
        "s^2",
        own,
        "exact",
        "log-normal lengths, not truncated",
        _SECTION,
        domain=v >= 1,
    )


@cache
def unexplained_lognormal() -> ClosedForm:
    """Variance of ``s^2 - q s`` for log-normal lengths, ``mu^4 v^3 (v - 1) (v^2 + v - 1)``."""
    mu, v = letters("mu v")
    return ClosedForm(
        "unexplained_variance_lognormal",
        "variance of a prompt's work that its tokens do not explain, log-normal lengths",
        "V_r",
        "token^4",
        mu**4 * v**3 * (v - 1) * (v**2 + v - 1),
        "exact",
        "log-normal lengths, not truncated",
        _SECTION,
        domain=v >= 1,
    )


@cache
def lockstep_rate() -> ClosedForm:
    """Prompts per layer time in lockstep, ``D k / (A_m (1 + c_B kappa_D) + tau + M_s)``."""
    A_m, c_B, kappa_D, tau, M_s, D, k = letters("A_m c_B kappa_D tau M_s D k")
    return ClosedForm(
        "lockstep_rate",
        "prompts per layer time of the synchronous system at saturation",
        "X_s",
        "1/s",
        D * k / (A_m * (1 + c_B * kappa_D) + tau + M_s),
        "approximation",
        f"{_NORMAL}, k prompts a group and iteration",
        _SECTION,
        "log-normal lengths: 3 %; two lengths, which fill batches better: 1 to 9 % low",
    )


@cache
def break_even_cv() -> ClosedForm:
    """Variation of a group's attention at which both systems saturate alike; the synchronous one wins below.

    `lockstep_rate` set equal to X_a and solved for c_B. Negative where the asynchronous system wins without any
    variability. It falls with D as 1/kappa_D: the more groups wait for one another, the less variability it takes.
    """
    A_m, X_a, kappa_D, tau, M_s, D, k = letters("A_m X_a kappa_D tau M_s D k")
    return ClosedForm(
        "break_even_cv",
        "variation of a group's attention at which both systems saturate alike",
        "c^*",
        "1",
        ((D * k / X_a - tau - M_s) / A_m - 1) / kappa_D,
        "approximation",
        f"{_NORMAL}, the asynchronous system at its saturation bound",
        _SECTION,
        "log-normal lengths: 15 % of the variation; two lengths: half of it, too early",
        domain=kappa_D > 0,
    )


BARRIER_FORMS = (
    largest_normal(),
    slowest_group(),
    batch_cv_prompts(),
    filled_tokens(),
    filled_variance(),
    batch_cv_tokens(),
    variance_lognormal(),
    unexplained_lognormal(),
    lockstep_rate(),
    break_even_cv(),
)
"""All forms of this module."""
