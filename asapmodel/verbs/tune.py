"""`tune`: the best policy inside a layout, what it gains, and how flat the optimum is."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from asapmodel.engines.effort import STEADY
from asapmodel.engines.problem import problem_of
from asapmodel.engines.screening import screen
from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import law_statistic
from asapmodel.tables import nearest
from asapmodel.tuning.parameters import Value, parameters_of
from asapmodel.tuning.search import Evaluations, Flatness, flatness, search
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import check_rate, evaluate

if TYPE_CHECKING:
    from asapmodel.tuning.drawn_gain import DrawnGain

__all__ = ["Tuned", "tune"]

_MISSED = -1e18  # of a policy that is not possible or misses the objective at every rate

Progress = Callable[[str], None] | None


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best policy found.

    Attributes
    ----------
    scenario : str
        Its name.
    objective : str
        ``"slo_throughput_rps"``, or ``"ttft_s"`` at `rate_rps`.
    before, after : float
        The objective with the scenario's own policy and with the best, by the full effort of the queueing engine.
    policy : dict
        Changed keys of `[policy]`; ``scenario.replace(**policy)`` is the tuned scenario.
    parameters : tuple of Flatness
        All that were searched.
    evaluations : int
        Policies that were evaluated.
    uncertainty : DrawnGain or None
        Whether the gain would survive the errors of constants, if that was asked.
    """

    scenario: str
    objective: str
    statistic: str
    rate_rps: float | None
    before: float
    after: float
    policy: dict[str, Value]
    parameters: tuple[Flatness, ...]
    evaluations: int
    uncertainty: "DrawnGain | None" = None

    @property
    def gain(self) -> float:
        """Relative improvement: more throughput, or less TTFT."""
        return self.after / self.before - 1 if self.rate_rps is None else 1 - self.after / self.before

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        out = asdict(self) | {"gain": self.gain}
        if self.uncertainty is None:
            del out["uncertainty"]
        return out


def tune(
    scenario: Scenario,
    rate: float | None = None,
    *,
    only: Sequence[str] = (),
    progress: Progress = None,
    uncertainty: bool = False,
    samples: int = 128,
    seed: int = 0,
    level: float = 0.9,
) -> Tuned:
    """Tune the policy of a scenario inside its layout.

    Parameters
    ----------
    scenario : Scenario
        Where the search begins.
    rate : float, optional
        Minimise the TTFT statistic at this rate; default: maximise the SLO throughput.
    only : sequence of str, optional
        Keys of `[policy]` to tune; default all that act on the system.
    progress : callable, optional
        Told what has been evaluated.
    uncertainty : bool
        Say also whether the gain would survive the errors of constants: both policies are asked again with drawn
        constants, the same for both. The policy stays the one that is best by the estimates.
    samples, seed, level
        See `asapmodel.verbs.uncertainty.uncertainty`.

    Raises
    ------
    NoAnswer
        If the objective is missed at every rate, or the rate is not below the stability limit, with every policy tried.
    InputError
        If a key cannot be tuned, or the scenario cannot be evaluated; with `uncertainty` also if it asks for runs of
        finite length.

    Notes
    -----
    Screened with the quick effort, whose SLO throughputs scatter by some tenths of a per cent between neighbouring
    policies: the optimum is found to about that. `before` and `after` are of the full effort.
    """
    if uncertainty:
        _check_drawable(scenario, samples, level)
    known = [one.key for one in parameters_of(scenario)]
    for key in only:
        if key not in known:
            remedy = f"give one of {', '.join(known)}; the nearest is '{nearest(key, known)}'"
            raise InputError(scenario.source, f"policy.{key}", "cannot be tuned", remedy)
    speed = None if rate is None else check_rate(rate)
    chosen = parameters_of(scenario, only)
    found = Evaluations(chosen, lambda policy: _answer(scenario, policy, speed, progress))
    start = tuple(one.nearest(getattr(scenario.policy, one.key)) for one in chosen)
    best = search(found, start)
    if found(best) <= _MISSED:
        what = f"{scenario.slo.statistic} TTFT <= {scenario.slo.ttft:g} s is missed at every rate"
        if speed is not None:
            what = f"{speed:g} requests/s is not below the stability limit"
        raise NoAnswer(f"{scenario.source}: {what}, with every policy that was tried")
    rows = flatness(found, start, best)
    changed = {row.key: row.best for row in rows if row.best != row.before}
    tuned = scenario.replace(**changed)
    before, after = (_full(one, speed) for one in (scenario, tuned))
    sure = None
    if uncertainty:
        from asapmodel.tuning.drawn_gain import drawn_gain

        sure = drawn_gain(scenario, tuned, speed, samples=samples, seed=seed, level=level, progress=progress)
    return Tuned(
        scenario=scenario.name,
        objective="slo_throughput_rps" if speed is None else "ttft_s",
        statistic=scenario.slo.statistic,
        rate_rps=speed,
        before=before,
        after=after,
        policy=changed,
        parameters=tuple(rows),
        evaluations=len(found.seen),
        uncertainty=sure,
    )


def _check_drawable(scenario: Scenario, samples: int, level: float) -> None:
    from asapmodel.uncertainties.drawing import check_stationary
    from asapmodel.verbs.uncertainty import check_draws

    check_draws(samples, level)
    check_stationary(scenario)


def _answer(scenario: Scenario, policy: dict[str, Value], rate: float | None, progress: Progress) -> float:
    """What the search maximises."""
    try:
        other = scenario.replace(**policy)
        found = screen(problem_of(other), lambda law: law_statistic(law, scenario.slo), scenario.slo.ttft, rate, STEADY)
    except (InputError, QueueError):
        return _MISSED
    if rate is None:
        value = found.throughput_rps if found.throughput_rps == found.throughput_rps else _MISSED
    else:
        value = _MISSED if found.at_rate is None else 1.0 / law_statistic(found.at_rate.ttft, scenario.slo)
    if progress is not None:
        progress(", ".join(f"{key} {one}" for key, one in policy.items()))
    return value


def _full(scenario: Scenario, rate: float | None) -> float:
    if rate is None:
        return capacity(scenario).slo_throughput_rps
    return evaluate(scenario, rate).slo.value_s
