"""Explorations of the protocol that the page reports: which systems, what was found, and the ways to what breaks."""

from dataclasses import dataclass

from asapmodel.reference.broken import BROKEN
from asapmodel.reference.counterexample import tell
from asapmodel.reference.exploration import Exploration, Verdict
from asapmodel.reference.primitives import ASYNC
from asapmodel.reference.small_system import SmallSystem, small_system
from asapmodel.studies.pages import markdown_table

__all__ = ["broken_table", "protocol_table", "story"]

_MOST_STATES, _MOST_S = 3_000_000, 150.0


@dataclass(frozen=True, slots=True)
class _Case:
    """A system to explore; `streams` are those of MoE devices."""

    D: int
    T: int
    E: int
    layers: int = 1
    batches: int = 2
    streams: int = 3

    def system(self, name: str | None = None) -> SmallSystem:
        """Make it, with broken primitives if a name of them is given."""
        return small_system(
            self.D,
            self.T,
            self.E,
            layers=self.layers,
            batches=self.batches,
            tokens=self.T,
            overlap_moe=self.streams == 3,
            primitives=ASYNC if name is None else BROKEN[name],
        )

    def __str__(self) -> str:
        return f"D = {self.D}, T = {self.T}, E = {self.E}"


_RIGHT = (
    _Case(1, 1, 2, layers=2, streams=1),
    _Case(1, 1, 2, layers=2),
    _Case(1, 2, 2, layers=1),
    _Case(1, 2, 2, layers=2),
    _Case(2, 1, 2, streams=1),
    _Case(2, 1, 2),
    _Case(2, 1, 2, layers=2),
    _Case(2, 2, 2, batches=1),
    _Case(2, 2, 2, layers=2),
)
_WRONG = {
    "dispatch flag before payload": _Case(1, 1, 1),
    "combine flag before payload": _Case(1, 1, 1),
    "dispatch cleared before copy": _Case(1, 1, 1),
    "combine cleared before copy": _Case(1, 1, 1),
    "dispatch without back-pressure": _Case(1, 1, 1),
    "combine without back-pressure": _Case(1, 1, 1),
    "one flag for all members": _Case(1, 2, 1),
    "hasty dispatch": _Case(2, 1, 2),
}


def _explore(case: _Case, name: str | None = None) -> tuple[SmallSystem, Verdict]:
    """Depth first to exhaust what is right, breadth first for the shortest way to what is wrong.

    With interleavings left out the way to a deadlock is still the shortest, that to other violations need not be.
    """
    small = case.system(name)
    search = Exploration(small, any_condition=True)
    if name is None:
        return small, search.run("depth", max_states=_MOST_STATES, max_seconds=_MOST_S)
    whole = name != "hasty dispatch"
    return small, search.run("breadth", reduce=not whole, max_states=_MOST_STATES, max_seconds=_MOST_S)


def protocol_table() -> str:
    """The right primitives in small systems."""
    rows = []
    for case in _RIGHT:
        _, found = _explore(case)
        verdict = found.violation or ("no violation" if found.exhausted else "none so far, **not exhausted**")
        numbers = [f"{found.states:,}", f"{found.transitions:,}", f"{found.seconds:.0f}"]
        rows.append([str(case), str(case.layers), str(case.batches), str(case.streams), verdict, *numbers])
    header = ["system", "layers", "batches a group", "MoE streams", "found", "states", "transitions", "s"]
    return markdown_table(header, rows, right=[1, 2, 3, 5, 6, 7])


def broken_table() -> str:
    """What is found of broken primitives."""
    rows = []
    for name, case in _WRONG.items():
        _, found = _explore(case, name)
        sentence = found.violation or "**not noticed**"
        rows.append([name, str(case), sentence, str(len(found.schedule)), f"{found.states:,}", f"{found.seconds:.1f}"])
    return markdown_table(["mistake", "system", "found", "steps", "states", "s"], rows, right=[3, 4, 5])


def story(name: str) -> str:
    """The shortest way to what a mistake breaks, step by step."""
    small, found = _explore(_WRONG[name], name)
    return "\n".join(tell(small, found.schedule))
