"""The search: differential evolution over the places of the parameters, then a walk that undoes what gains nothing.

Storn and Price, J. Global Optimization 11 (1997), as `scipy.optimize.differential_evolution` has it, with whole numbers
as the places of the values, a fixed seed, and no polishing: the answer is a staircase with a little roughness, not a
smooth function. Every policy is evaluated once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, differential_evolution

from asapmodel.tuning.parameters import Parameter, Value

__all__ = ["Evaluations", "Flatness", "flatness", "search"]

Places = tuple[int, ...]


@dataclass
class Evaluations:
    """Evaluated policies: larger is better; -inf for one that is not possible.

    Attributes
    ----------
    parameters : sequence of Parameter
        What the places are of.
    evaluate : callable
        Of a mapping from key to value.
    seen : dict
        By places.
    """

    parameters: Sequence[Parameter]
    evaluate: Callable[[dict[str, Value]], float]
    seen: dict[Places, float] = field(default_factory=dict)

    def policy(self, places: Places) -> dict[str, Value]:
        """Values at places."""
        return {one.key: one.values[place] for one, place in zip(self.parameters, places, strict=True)}

    def __call__(self, places: Places) -> float:
        """Evaluate, at most once."""
        if places not in self.seen:
            self.seen[places] = self.evaluate(self.policy(places))
        return self.seen[places]


def search(
    evaluations: Evaluations, start: Places, *, population: int = 6, generations: int = 12, keep: float = 0.002
) -> Places:
    """Look for the best policy.

    Parameters
    ----------
    evaluations : Evaluations
        What is good.
    start : tuple of int
        Places of the policy to begin with; it is a member of the first generation.
    population : int
        Members per parameter.
    generations : int
        At most.
    keep : float
        A parameter goes back to its start if that loses less than this share.

    Returns
    -------
    tuple of int
        Deterministic.
    """
    bounds = Bounds(np.zeros(len(start)), np.array([len(one.values) - 1.0 for one in evaluations.parameters]))

    def loss(x: np.ndarray) -> float:
        return -evaluations(tuple(round(float(value)) for value in x))

    differential_evolution(
        loss,
        bounds,
        integrality=[True] * len(start),
        popsize=population,
        maxiter=generations,
        tol=1e-3,
        seed=1,
        polish=False,
        init="sobol",
        x0=start,
        updating="immediate",
    )
    best = max(evaluations.seen, key=lambda places: (evaluations.seen[places], places))
    for k in range(len(best)):
        back = (*best[:k], start[k], *best[k + 1 :])
        if evaluations(back) >= (1 - keep) * evaluations(best):
            best = back
    return best


@dataclass(frozen=True, slots=True)
class Flatness:
    """One parameter at the optimum.

    Attributes
    ----------
    key : str
        Its name in `[policy]`.
    before, best : value
        At the start, and at the optimum.
    alone : float
        Gain from the start by this parameter alone, relative.
    within : tuple of two values, or of all choices
        How far it can move from the optimum, the others fixed, until a share is lost.
    """

    key: str
    before: Value
    best: Value
    alone: float
    within: tuple[Value, ...]


def flatness(evaluations: Evaluations, start: Places, best: Places, share: float = 0.01) -> list[Flatness]:
    """How flat the optimum is, parameter by parameter."""
    found = []
    for k, one in enumerate(evaluations.parameters):

        def at(place: int, k: int = k) -> float:
            return evaluations((*best[:k], place, *best[k + 1 :]))

        enough = (1 - share) * evaluations(best)
        within: tuple[Value, ...]
        if isinstance(one.values[0], str | bool):
            within = tuple(value for place, value in enumerate(one.values) if at(place) >= enough)
        else:
            within = (
                one.values[_edge(at, best[k], -1, 0, enough)],
                one.values[_edge(at, best[k], 1, len(one.values) - 1, enough)],
            )
        alone = evaluations((*start[:k], best[k], *start[k + 1 :])) / evaluations(start) - 1
        found.append(Flatness(one.key, one.values[start[k]], one.values[best[k]], alone, within))
    return found


def _edge(at: Callable[[int], float], place: int, step: int, end: int, enough: float) -> int:
    """Last place in a direction up to which it is enough, by doubling steps and halving them again."""
    reach = 1
    while place != end:
        further = place + step * reach
        further = min(further, end) if step > 0 else max(further, end)
        if at(further) >= enough:
            place, reach = further, 2 * reach
        elif reach == 1:
            break
        else:
            reach = 1 if reach <= 2 else reach // 4
    return place
