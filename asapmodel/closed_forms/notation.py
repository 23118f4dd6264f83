"""Letters of the closed forms: meaning, unit, and whether 0 is allowed.

Times are those of one MoE layer for one batch unless they say otherwise. Letters are the paper's where it has one. A
second batch of a pair carries the index `b`, the long prompt of a pair the index `l`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import sympy

from asapmodel.models.symbols import SYMBOLS

__all__ = ["QUANTITIES", "Quantity", "letters"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One letter: `unit` is ``1`` for counts and shares; `zero` says whether 0 is a legal value."""

    letter: str
    meaning: str
    unit: str
    zero: bool = False


_TIMES = (
    Quantity("A", "attention", "s"),
    Quantity("t1", "dispatch send", "s", zero=True),
    Quantity("t2", "dispatch receive", "s", zero=True),
    Quantity("M", "experts, and exposed host dispatch where it is not h", "s"),
    Quantity("t4", "combine send", "s", zero=True),
    Quantity("t5", "combine receive", "s", zero=True),
)

_TABLE = (
    *_TIMES,
    *(Quantity(f"{one.letter}_b", f"{one.meaning}, second batch", one.unit, one.zero) for one in _TIMES),
    Quantity("G", "time on the group's stream", "s"),
    Quantity("G_b", "time on the group's stream, its partner", "s"),
    Quantity("O_b", "time off the group, its partner", "s"),
    Quantity("F", "dense layers and step overhead of a batch", "s", zero=True),
    Quantity("h", "exposed host dispatch", "s", zero=True),
    Quantity("a0", "attention: fixed", "s", zero=True),
    Quantity("a1", "attention: per token", "s/token", zero=True),
    Quantity("a2", "attention: per squared token", "s/token^2", zero=True),
    Quantity("g0", "group's stream: fixed", "s", zero=True),
    Quantity("g1", "group's stream: per token", "s/token", zero=True),
    Quantity("o0", "off the group without experts: fixed", "s", zero=True),
    Quantity("o1", "off the group without experts: per token", "s/token", zero=True),
    Quantity("m0", "experts: floor", "s"),
    Quantity("m1", "experts: per token", "s/token"),
    Quantity("r0", "transfers on the pool's stream: fixed", "s", zero=True),
    Quantity("r1", "transfers on the pool's stream: per token", "s/token", zero=True),
    Quantity("n", "tokens of a batch", "token"),
    Quantity("q", "attention work per token, w/n", "token", zero=True),
    Quantity("mu", "mean prompt length", "token"),
    Quantity("v", "E s^2 / (E s)^2 = 1 + CV^2 of the lengths", "1"),
    Quantity("k", "prompts of a batch", "1"),
    Quantity("V_a", "variance of the attention a1 s + a2 s^2 of a prompt", "s^2", zero=True),
    Quantity("V_n", "variance of a batch's tokens", "token^2", zero=True),
    Quantity("u", "E s^3 / E s of the lengths", "token^2"),
    Quantity("n_max", "most tokens of a batch", "token"),
    Quantity("V_r", "variance of s^2 - q s, the work that the tokens do not explain", "token^4", zero=True),
    Quantity("eta", "share of the experts' linear rate", "1"),
    Quantity("theta", "share of experts in attention", "1"),
    Quantity("epsilon", "share of throughput", "1"),
    Quantity("L", "MoE layers", "1"),
    Quantity("D", "attention groups", "1"),
    Quantity("T", "devices of a group", "1"),
    Quantity("N", "devices in all", "1"),
    Quantity("N_s", "batches a group may hold", "1"),
    Quantity("K_E", "experts: device-seconds of a batch, E times their time", "s"),
    Quantity("X_a", "prompts per layer time of the asynchronous system", "1/s"),
    Quantity("A_m", "mean attention of a group's batch", "s"),
    Quantity("c_B", "coefficient of variation of a group's attention per iteration", "1", zero=True),
    Quantity("kappa_D", "expected largest of D standard normals", "1", zero=True),
    Quantity("tau", "blocking transfers of a lockstep layer", "s", zero=True),
    Quantity("M_s", "experts of a lockstep layer, all groups' tokens", "s"),
)

QUANTITIES: Mapping[str, Quantity] = MappingProxyType({one.letter: one for one in _TABLE})
"""The table, by letter."""


def quantity(letter: str, hardware: bool) -> Quantity:
    """The entry of a letter, in the table here or (`hardware`) in that of the cost models."""
    if not hardware:
        return QUANTITIES[letter]
    entry = SYMBOLS[letter]
    return Quantity(letter, entry.meaning, entry.unit, entry.zero)


@cache
def letters(names: str) -> tuple[sympy.Symbol, ...]:
    """SymPy symbols of letters separated by spaces: positive, nonnegative where 0 is legal.

    Raises
    ------
    KeyError
        A letter is not in the table.

    Examples
    --------
    >>> t1, M = letters("t1 M")
    >>> t1.is_nonnegative, M.is_positive, QUANTITIES["M"].unit
    (True, True, 's')
    """
    entries = [QUANTITIES[name] for name in names.split()]
    return tuple(
        sympy.Symbol(one.letter, nonnegative=True) if one.zero else sympy.Symbol(one.letter, positive=True)
        for one in entries
    )
