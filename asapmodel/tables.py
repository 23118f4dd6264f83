"""The common ground of all TOML tables: frozen, strict, and every mistake told as file, key, problem, remedy.

`Table` is the base of the scenario's and the catalogue's tables; the annotated types below are what their fields are
made of. `validate` turns the first of pydantic's complaints into an `InputError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Annotated, Any, Optional, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from asapmodel import units
from asapmodel.errors import InputError

__all__ = [
    "Count",
    "CountOrZero",
    "Fraction",
    "Overrides",
    "PerSecond",
    "Positive",
    "PositiveSeconds",
    "Quantity",
    "Seconds",
    "Table",
    "TableError",
    "nearest",
    "optional_table",
    "unknown_file",
    "unknown_key",
    "validate",
]

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]
Seconds = Annotated[float, BeforeValidator(units.seconds), Field(ge=0.0)]
PositiveSeconds = Annotated[float, BeforeValidator(units.seconds), Field(gt=0.0)]
PerSecond = Annotated[float, BeforeValidator(units.per_second), Field(gt=0.0)]
Bytes = Annotated[float, BeforeValidator(units.bytes_), Field(gt=0.0)]
BytesPerSecond = Annotated[float, BeforeValidator(units.bytes_per_second), Field(gt=0.0)]
FlopsPerSecond = Annotated[float, BeforeValidator(units.flops_per_second), Field(gt=0.0)]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of number a table may hold: the annotated type that parses it and its SI unit (``"1"``: none)."""

    type: Any
    unit: str


class TableError(ValueError):
    """A mistake in a table; `key` is relative to where the validator that raises it sits."""

    def __init__(self, key: str, problem: str, remedy: str) -> None:
        self.key, self.problem, self.remedy = key, problem, remedy
        super().__init__(f"{key}: {problem}; {remedy}")


_NEARLY = 0.9  # likeness above which a word is another, misspelt
_LIKELY = 0.6  # below which it is none of them


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the entry of `valid` most like `word`, whatever its case.

    Where none is nearly the word, one that contains it comes before others.

    Examples
    --------
    >>> nearest("batch_windw", ["max_batch_tokens", "batch_window"])
    'batch_window'
    >>> nearest("supernodes", ["supernode", "max_supernodes"]), nearest("910c", ["h100", "ascend-910c-die"])
    ('supernode', 'ascend-910c-die')
    """
    low = word.casefold()

    def likeness(entry: str) -> float:
        return SequenceMatcher(None, low, entry.casefold()).ratio()

    def holds(entry: str) -> bool:
        return len(low) > 3 and low in entry.casefold()

    return max(valid, key=lambda entry: (likeness(entry) > _NEARLY, holds(entry), likeness(entry)))


def unknown_file(word: str, kind: str, shipped: Sequence[str]) -> tuple[str, str]:
    """Return problem and remedy of what is neither a file nor a shipped entry (``"scenario"``, ``"demand"``)."""
    likely = nearest(word, shipped)
    like = SequenceMatcher(None, word.casefold(), likely.casefold()).ratio() > _LIKELY or word.casefold() in likely
    remedy = f"the nearest is '{likely}'" if like else f"`asapmodel list {kind}s` names those"
    return f"no such file or shipped {kind}", f"give a file or a shipped {kind}; {remedy}"


def unknown_key(key: str, valid: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> TableError:
    """Return the problem of a key that is not among `valid`; `elsewhere` maps keys to the table they belong in."""
    if elsewhere and key in elsewhere:
        return TableError(key, "unknown key", f"it belongs in [{elsewhere[key]}]")
    return TableError(key, "unknown key", f"the nearest valid key is '{nearest(key, valid)}'")


class Table(BaseModel):
    """A frozen table that knows its keys and converts nothing silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        # Ahead of pydantic's own check, so that a misspelt key is reported rather than the one it leaves missing.
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise unknown_key(str(key), cls.model_fields)
        return data


class Overrides(Table):
    """A table whose keys are all optional: what is given replaces what is known from elsewhere."""

    def given(self) -> dict[str, Any]:
        """Return the keys that were given with their values, in the order of the fields."""
        return {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}


OverridesT = TypeVar("OverridesT", bound=Overrides)
TableT = TypeVar("TableT", bound=BaseModel)


def optional_table(name: str, base: type[OverridesT], types: Mapping[str, Any]) -> type[OverridesT]:
    """Return a subclass of `base` with one optional field per entry of `types`."""
    fields: dict[str, Any] = {key: (Optional[kind], None) for key, kind in types.items()}  # noqa: UP045
    return create_model(name, __base__=base, **fields)


def validate(model: type[TableT], data: Any, where: str, key: str = "") -> TableT:
    """Return `data` as a `model`.

    Parameters
    ----------
    where, key : str
        The file, and the dotted key of `data` in it, for the message.

    Raises
    ------
    InputError
        The first problem, in one line.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    # Tags of unions stand in the location as "<tag>"; the file has no such level.
    path = [part for part in (key, *map(str, first["loc"])) if part and not part.startswith("<")]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, TableError | units.UnitError):
        path += [cause.key] if isinstance(cause, TableError) and cause.key else []
        problem, remedy = cause.problem, cause.remedy
    elif first["type"] == "missing":
        problem, remedy = "is missing", f"add {path[-1]} = ... to {'.'.join(path[:-1]) or 'the file'}"
    else:
        problem, remedy = _words(first["type"], first["input"], first.get("ctx", {}), first["msg"])
    raise InputError(where, ".".join(path), problem, remedy)


_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "too_short": "at least one entry",
    "model_type": "a table, key = value",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "of at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "of at most"),
}


def _words(kind: str, value: Any, context: Mapping[str, Any], message: str) -> tuple[str, str]:
    """Return problem and remedy for one of pydantic's own error types."""
    shown = f"is {value!r}" if len(repr(value)) <= 60 else f"is {repr(value)[:57]}..."
    if isinstance(value, bool):
        shown = f"is {str(value).lower()}"
    if kind == "literal_error":
        return shown, f"give {context['expected']}"
    if kind in _BOUNDS:
        bound, relation = _BOUNDS[kind]
        limit = context[bound]
        return shown, f"give a {'whole ' if isinstance(limit, int) else ''}number {relation} {limit:g}"
    return shown, f"give {_WANTED[kind]}" if kind in _WANTED else message
