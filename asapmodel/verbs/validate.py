"""`validate`: run the executable reference system and compare it with the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapmodel.reference.checks import Outcome

__all__ = ["Validation", "check_count", "validate"]


@dataclass(frozen=True, slots=True)
class Validation:
    """Verdicts of all checks, in the order in which they ran."""

    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(one.passed for one in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"passed": self.passed, "checks": [asdict(one) for one in self.outcomes]}


def check_count() -> int:
    """Return how many checks `validate` runs, and so how often it reports progress."""
    from asapmodel.reference.check_list import CHECKS

    return len(CHECKS)


def validate(progress: Callable[[str], None] | None = None) -> Validation:
    """Run the reference system: really moved tensors against formulas, the graph engine and a monolithic pass.

    Nothing of a user's is read: the systems are small random ones, the same every time. It takes a minute or two, and
    starts processes (see `asapmodel.reference`).

    Parameters
    ----------
    progress : callable, optional
        Told the name of each check before it runs.

    Returns
    -------
    Validation
        `passed` and, for each check, its name, verdict, what was found, and seconds.
    """
    from asapmodel.reference.check_list import CHECKS

    outcomes = []
    for check in CHECKS:
        if progress is not None:
            progress(check.name)
        outcomes.append(check.run())
    return Validation(tuple(outcomes))
