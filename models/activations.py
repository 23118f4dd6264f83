"""Activations: what the tokens of a batch occupy on a device while a layer is computed, at the worst moment of it.

A layer is a sequence of products with kernels between them. At each *moment* its inputs, its results and whatever is
needed later are in memory; anything else is free again. The need is the largest moment, beside what lives across all
of them: the residual stream of every batch that a group holds and, on devices with experts, the copies of every batch
that is there. Written in 16 bit, except inputs of products with weights, which have the bytes of the precision.

The order of the kernels and what each of them writes is that of `asapmodel.models.elementwise`; the largest step counts
(n tokens), alone on its device: one stream. Not counted: scores of the gate, scales, indices of copies (2 % in all),
and logits: of last tokens only, when all else is gone. Not modelled: fragmentation of the allocator, workspace of
libraries, heads that a sparse core pads to 64, a second stream of an attention device. Derivation and checks:
docs/background/cost-models.md, Activations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models.elementwise import Kind
from asapmodel.models.imbalance import imbalance_expression
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["attention_moments", "expert_moments", "expressions", "largest", "lasting"]


@cache
def lasting(kind: str) -> Mapping[str, sympy.Expr]:
    """What lives across all moments: ``residuals`` ``N_s n H Dsize``, ``copies`` ``D N_s chi n K/E H Dsize``.

    Parameters
    ----------
    kind : str
        ``"asap"``, or ``"sync"``, where N_s is 1.

    Returns
    -------
    mapping of str to sympy.Expr
        Bytes. Residuals are on each device of a group. Copies are of all batches under way, on the busiest of E devices
        with experts, as tokens that wait or as results; in lockstep those of one iteration.

    Notes
    -----
    An asynchronous receive moves what arrived into the device's own memory and frees the shared buffer for the group's
    next batch (sec. 3.2), so that all ``D N_s`` batches can be on the devices with experts at once: an upper bound,
    reached under overload. They are in layers of their own, so chi is that of a sum over ``D N_s`` layers, in lockstep
    that of one (`asapmodel.models.imbalance`).

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> found = lasting("asap").items()
    >>> {name: int(evaluate(x, *paper_deployment(), n=32768, N_s=2, mu_E=1.8)) for name, x in found}
    {'residuals': 939524096, 'copies': 1879048192}
    """
    D, N_s, n, K, E, H, size = symbols("D N_s n K E H Dsize")
    batches = D * N_s
    chi = _busiest(batches if kind == "asap" else 1)
    return MappingProxyType({"residuals": N_s * n * H * size, "copies": batches * chi * n * K / E * H * size})


def _busiest(layers: sympy.Expr | int) -> sympy.Expr:
    """Load of the busiest device over the mean, summed over so many layers."""
    return imbalance_expression().subs(symbols("N_l")[0], layers)


@cache
def attention_moments(kind: Kind) -> Mapping[str, sympy.Expr]:
    """Bytes at each moment of attention, of a dense FFN and of the transfers, on one of a group's T devices.

    Parameters
    ----------
    kind : Kind
        Of attention.

    Returns
    -------
    mapping of str to sympy.Expr
        Bytes beside `lasting`, with ``q(x) = x b_a``, or nothing where products take activations as they are. A token
        (n of them; S keys for ``latent`` and the scores)::

            latents    (H + rq + rk + dr) Dsize + q(H) + q(rq)                   latent, sparse
            queries    (H + rk + dr + h/T (dn+dr)) Dsize + q(H) + rq b_a
            expanded   h/T (dn+dr+dv) Dsize, a key h/T (2 dn+dr+dv) Dsize        latent; sparse with n keys
            indexer    queries + Hi Di Dsize + q(Hi Di)                          the rest: sparse
            scores     queries + Hi Di b_a + k b_f + min(S b_f, M_s/n)
            absorbed   h/T (2 rk + dr) Dsize + k b_f
            values     h/T (rk + dv) Dsize

            projected  (H + h/T d_h + 2 h_kv' d_h) Dsize + q(H)                  grouped, h_kv' = max(h_kv/T, 1)
            core       3 (h/T + h_kv') d_h Dsize

            output     h/T dv b_a + H Dsize                                      grouped: d_h for dv
            gate and up, activation, down                                        dense FFN: below, H_d/T for m
            dispatch   H Dsize + K/T H b_a
            combine    H Dsize + K/T H Dsize

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> found = {name: float(evaluate(x, *paper_deployment(), n=32768, S=32768))
    ...     for name, x in attention_moments("sparse").items()}
    >>> name = max(found, key=lambda one: found[one])
    >>> name, f"{found[name] / 1e9:.2f} GB"
    ('absorbed', '2.55 GB')
    """
    import sympy

    n, H, T, K, H_d, L_d, b_a, size = symbols("n H T K H_d L_d b_a Dsize")
    own = _grouped() if kind == "grouped" else _latent(sparse=kind == "sparse")
    dense = {name: sympy.Min(L_d, 1) * n * x for name, x in _ffn(H_d / T).items()}
    transfers = {"dispatch": n * (H * size + K * H * b_a / T), "combine": n * (H * size + K * H * size / T)}
    return MappingProxyType({**own, **dense, **transfers})


def _latent(sparse: bool) -> dict[str, sympy.Expr]:
    import sympy

    H, h, T, rq, rk, dn, dr, dv = symbols("H h T rq rk dn dr dv")
    n, S, Hi, Di, k, b_a, size, b_f, room = symbols("n S Hi Di k b_a Dsize b_f M_s")
    heads = h / T
    query = heads * (dn + dr) * size
    queries = H * size + _quantised(H) + rq * b_a + (rk + dr) * size + query
    keys = n if sparse else S  # sparse models expand the keys of short prompts only, which have no earlier part
    moments = {
        "latents": n * ((H + rq + rk + dr) * size + _quantised(H) + _quantised(rq)),
        "queries": n * queries,
        "expanded": n * (query + heads * dv * size) + keys * heads * (2 * dn + dr + dv) * size,
        "output": n * (heads * dv * b_a + H * size),
    }
    if sparse:
        chosen = k * b_f
        moments |= {
            "indexer": n * (queries + Hi * Di * size + _quantised(Hi * Di)),
            "scores": n * (queries + Hi * Di * b_a + chosen) + sympy.Min(n * S * b_f, room),
            "absorbed": n * (heads * (2 * rk + dr) * size + chosen),
            "values": n * heads * (rk + dv) * size,
        }
    return moments


def _grouped() -> dict[str, sympy.Expr]:
    import sympy

    n, H, h, h_kv, d_h, T, b_a, size = symbols("n H h h_kv d_h T b_a Dsize")
    heads, held = h / T, sympy.Max(h_kv / T, 1)
    joined = (heads + 2 * held) * d_h * size
    return {
        "projected": n * (H * size + _quantised(H) + joined),
        # Queries and keys once more, side by side for their norms, and the result; values lie in the joined tensor.
        "core": n * (joined + (heads + held) * d_h * size + heads * d_h * size),
        "output": n * (heads * d_h * b_a + H * size),
    }


def _quantised(count: sympy.Expr) -> sympy.Expr:
    """Bytes of the copy that is an input of a product; none where that takes the activations as they are."""
    import sympy

    b_a, size = symbols("b_a Dsize")
    return sympy.Piecewise((0, sympy.Eq(b_a, size)), (count * b_a, True))


def _ffn(width: sympy.Expr) -> dict[str, sympy.Expr]:
    """Bytes of a row at the moments of a gated FFN: input and two halves; halves and their product; that and result."""
    H, b_a, size = symbols("H b_a Dsize")
    return {
        "gate and up": H * b_a + 2 * width * size,
        "activation": 3 * width * size,
        "down": width * b_a + H * size,
    }


@cache
def expert_moments(kind: str) -> Mapping[str, sympy.Expr]:
    """Bytes at each moment of the experts' layer on the busiest of E devices, with ``chi N (K + g)/E`` rows.

    Parameters
    ----------
    kind : str
        ``"asap"``: N = n tokens, of one group; ``"sync"``: N = D n, of all groups.

    Returns
    -------
    mapping of str to sympy.Expr
        Bytes beside `lasting`, where the rows lie before they are sorted and where results are put; chi is that of one
        layer. A row::

            gate and up   H b_a + 2 m Dsize         sorted by expert, and the first product's result
            activation    3 m Dsize                 that, and the product of its halves
            down          m b_a + H Dsize           that as input, and the second product's result

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> found = expert_moments("asap").items()
    >>> {name: int(evaluate(x, *paper_deployment(), n=32768, mu_E=1.8)) for name, x in found}
    {'gate and up': 283115520, 'activation': 226492416, 'down': 301989888}
    """
    n, D, K, g, E, m = symbols("n D K g E m")
    rows = _busiest(1) * (D * n if kind == "sync" else n) * (K + g) / E
    return MappingProxyType({name: rows * x for name, x in _ffn(m).items()})


def expressions(kind: str, attention: Kind) -> dict[str, sympy.Expr]:
    """All of the above by name, for `largest`.

    Examples
    --------
    >>> list(expressions("asap", "grouped"))[:4]
    ['residuals', 'copies', 'attention: projected', 'attention: core']
    """
    named = zip(_WHERE, (attention_moments(attention), expert_moments(kind)), strict=True)
    return {**lasting(kind), **{f"{where}: {name}": x for where, some in named for name, x in some.items()}}


_WHERE = ("attention", "experts")


def largest(kind: str, sizes: Mapping[str, float]) -> dict[str, float]:
    """Activations of a device by role: ``residuals + max(attention)``, ``copies + max(experts)``.

    Parameters
    ----------
    kind : str
        ``"asap"`` (roles attention, moe) or ``"sync"`` (role device).
    sizes : mapping of str to float
        Values of `expressions`, bytes.

    Returns
    -------
    dict of str to float
        Bytes. A device of a synchronous system computes attention and experts in turn: the residual stream and the
        larger of both.

    Examples
    --------
    >>> sizes = {"residuals": 5.0, "copies": 3.0, "attention: core": 4, "attention: output": 6, "experts: down": 2}
    >>> largest("asap", sizes), largest("sync", sizes)
    ({'attention': 11.0, 'moe': 5.0}, {'device': 11.0})
    """
    own, experts = (max(x for name, x in sizes.items() if name.startswith(f"{where}: ")) for where in _WHERE)
    experts += sizes["copies"]
    if kind == "sync":
        return {"device": sizes["residuals"] + max(own, experts)}
    return {"attention": sizes["residuals"] + own, "moe": experts}
