"""The `[workload]` table: when prompts arrive, and how long they are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from asapmodel import catalog
from asapmodel.tables import Count, CountOrZero, PerSecond, Positive, PositiveSeconds, Table, TableError, nearest

__all__ = ["Constant", "Lengths", "Lognormal", "TraceLengths", "Values", "WorkloadTable"]


class Lognormal(Table):
    """Prompt lengths whose natural logarithm is normal, truncated to the bounds of the workload."""

    family: Literal["lognormal"]
    mu: float
    sigma: Positive


class Constant(Table):
    """Every prompt of one length."""

    constant: Count


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Values(Table):
    """Prompt lengths drawn from a list, each entry equally likely."""

    values: Annotated[tuple[Count, ...], BeforeValidator(_tuple), Field(min_length=1)]


def _trace_file(value: Any) -> Any:
    """Return the path of a trace: an existing file, or the name of a shipped one."""
    if not isinstance(value, str):
        raise TableError("", f"is {value!r}", "give a file or the name of a shipped trace in quotes")
    if os.path.isfile(value):
        return Path(value)
    shipped = catalog.names("traces")
    if value in shipped:
        return catalog.entry_path("traces", value)
    remedy = f"the nearest shipped trace is '{nearest(Path(value).name, shipped)}'" if shipped else "check the path"
    raise TableError("", f"no such file: {value}", f"paths are relative to the scenario file; {remedy}")


TraceFile = Annotated[Path, BeforeValidator(_trace_file)]


class TraceLengths(Table):
    """Prompt lengths (with their cached prefixes) drawn from a trace."""

    trace: TraceFile


_LENGTH_KEYS = ("constant", "values", "trace")


def _one_form(lengths: Any) -> None:
    given = [key for key in ("family", *_LENGTH_KEYS) if isinstance(lengths, Mapping) and key in lengths]
    if len(given) > 1:
        raise TableError("lengths", f"has both {given[0]} and {given[1]}", "give one of them")


def _length_form(value: Any) -> str:
    given = value if isinstance(value, Mapping) else type(value).model_fields if isinstance(value, Table) else ()
    return next((f"<{key}>" for key in _LENGTH_KEYS if key in given), "<lognormal>")


Lengths: TypeAlias = Lognormal | Constant | Values | TraceLengths
_TaggedLengths = Annotated[
    Annotated[Lognormal, Tag("<lognormal>")]
    | Annotated[Constant, Tag("<constant>")]
    | Annotated[Values, Tag("<values>")]
    | Annotated[TraceLengths, Tag("<trace>")],
    Discriminator(_length_form),
]
# The lognormal that has the mean (5k) and range (31 to 100k) the paper states; our guess, see the shipped scenarios.
_PAPER_LENGTHS = {"family": "lognormal", "mu": 7.5733, "sigma": 1.445}


class WorkloadTable(Table):
    """`[workload]`: when prompts arrive and how long they are.

    `trace` replays arrivals and lengths; `arrivals`, `duration` (None: the whole trace) and `lengths` (None: the
    trace's) are filled in accordingly. `rate` None means as recorded, or still to be given. `spread`, in seconds,
    spreads the arrivals of a trace uniformly within the ticks of its clock. `duration` is the length of a run of the
    graph engine; `horizon` has the queueing engine answer for a run of that length, None for a system that has run
    forever.
    """

    arrivals: Literal["poisson", "gamma", "trace"]
    rate: PerSecond | None = None
    cv: Positive | None = None
    lengths: _TaggedLengths | None = None
    trace: TraceFile | None = None
    spread: PositiveSeconds | None = None
    min_prompt_tokens: Count = 1
    max_prompt_tokens: Count = 32768
    duration: PositiveSeconds | None = None
    horizon: PositiveSeconds | None = None
    seed: CountOrZero = 1

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        _one_form(data.get("lengths"))
        if "trace" in data:
            return {"arrivals": "trace", **data}
        return {"arrivals": "poisson", "duration": 300.0, "lengths": _PAPER_LENGTHS, **data}

    @model_validator(mode="after")
    def _consistent(self) -> "WorkloadTable":
        if self.trace is None and self.arrivals == "trace":
            raise TableError("trace", "is missing", "arrivals = 'trace' needs it")
        if self.trace is not None and self.arrivals != "trace":
            remedy = "leave arrivals out, or give lengths = { trace = ... } in place of trace"
            raise TableError("arrivals", f"is '{self.arrivals}' although a trace is replayed", remedy)
        if self.trace is not None and self.lengths is not None:
            raise TableError("lengths", "cannot be combined with trace", "a trace has its own lengths; leave one out")
        if self.trace is None and self.spread is not None:
            raise TableError("spread", "is only for a replayed trace", "leave it out, or give trace")
        if self.arrivals == "gamma" and self.cv is None:
            raise TableError("cv", "is missing", "arrivals = 'gamma' needs the coefficient of variation")
        if self.arrivals != "gamma" and self.cv is not None:
            raise TableError(
                "cv", f"is not for arrivals = '{self.arrivals}'", "leave it out, or give arrivals = 'gamma'"
            )
        self._bounds()
        return self

    def _bounds(self) -> None:
        low, high = self.min_prompt_tokens, self.max_prompt_tokens
        if low > high:
            raise TableError("min_prompt_tokens", f"is {low}", f"give at most max_prompt_tokens, {high}")
        tokens: tuple[int, ...] = ()
        if isinstance(self.lengths, Constant):
            tokens = (self.lengths.constant,)
        elif isinstance(self.lengths, Values):
            tokens = self.lengths.values
        if tokens and not any(low <= n <= high for n in tokens):
            remedy = f"give a length from min_prompt_tokens {low} to max_prompt_tokens {high}"
            raise TableError("lengths", "no length is within the bounds", remedy)
