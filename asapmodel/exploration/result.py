"""The answer of an exploration: the table of all points, the front, the best of each objective, what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asapmodel.exploration.designs import LeftOut
from asapmodel.exploration.objectives import OBJECTIVES, ranking
from asapmodel.exploration.table import varied_columns

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.exploration.choice import Choice
    from asapmodel.exploration.space import Space

__all__ = ["Exploration"]


@dataclass(frozen=True, eq=False)
class Exploration:
    """What is known of a space.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per feasible point: what it is, its measures and objectives, `effort` (``"full"`` where it was settled),
        `on_front`, and `graph_rps`, `graph_low_rps`, `graph_high_rps` of what the graph engine confirmed.
    left_out : tuple of LeftOut
        Reasons, how many points each left out, and an example.
    objectives : tuple of str
        In the order of the space.
    combinations : int
        Different points, feasible or not.
    varied : tuple of str
        Columns of the keys that vary, beyond the kind of system and its degrees.
    reused : bool
        Whether a finished output was read in place of a computation.
    uncertainty : Choice or None
        Whether the choice of the best points would survive the errors of constants, if that was asked.
    """

    source: str
    table: pd.DataFrame = field(repr=False)
    left_out: tuple[LeftOut, ...]
    objectives: tuple[str, ...]
    combinations: int
    varied: tuple[str, ...]
    reused: bool
    uncertainty: Choice | None = None

    @classmethod
    def of(cls, space: Space, table: pd.DataFrame, more: Mapping[str, Any], reused: bool) -> Exploration:
        """Put an answer together from what a file holds."""
        left_out = tuple(LeftOut(*one) for one in more["left_out"])
        columns = tuple(varied_columns(space))
        return cls(space.source, table, left_out, space.objectives, more["combinations"], columns, reused)

    @property
    def front(self) -> pd.DataFrame:
        """The exact Pareto front, best in the first objective first."""
        order = ranking(self.table, self.objectives)
        ranked = self.table.iloc[order]
        return ranked[ranked["on_front"]].reset_index(drop=True)

    @property
    def best(self) -> pd.DataFrame:
        """The best point of each objective, a row each; `objective` says which."""
        import pandas as pd

        rows = []
        for name in self.objectives:
            others = [other for other in self.objectives if other != name]
            front = self.front
            rows.append(front.iloc[ranking(front, [name, *others])[:1]].assign(objective=name))
        return pd.concat(rows, ignore_index=True)

    @property
    def confirmed(self) -> pd.DataFrame:
        """Points that the graph engine confirmed, best first; empty if none was."""
        if "graph_rps" not in self.table:
            return self.table.iloc[:0]
        ranked = self.table.iloc[ranking(self.table, self.objectives)]
        return ranked[ranked["graph_rps"].notna()].reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints: all but the table."""
        sure = {} if self.uncertainty is None else {"uncertainty": self.uncertainty.to_dict()}
        return {
            "source": self.source,
            "combinations": self.combinations,
            "feasible": len(self.table),
            "left_out": [one._asdict() for one in self.left_out],
            "objectives": [
                {"name": name, "column": OBJECTIVES[name].column, "largest": OBJECTIVES[name].largest}
                for name in self.objectives
            ],
            "best": _records(self.best),
            "front": _records(self.front),
            "confirmed": _records(self.confirmed),
            "reused": self.reused,
            **sure,
        }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; what is missing is None."""
    cells = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in cells.to_dict("records")]
