"""TOML in and out: files and text to plain tables, plain tables to text, every failure an `InputError`.

The writer covers what our files hold (numbers, text, booleans, lists, tables); nested tables become inline ones.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asapmodel.errors import InputError

__all__ = ["format_toml", "parse_toml", "read_text"]

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


def read_text(path: Path, where: str) -> str:
    """Return the text of a UTF-8 file.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(where, "", "no such file", "check the path") from None
    except IsADirectoryError:
        raise InputError(where, "", "is a directory", "give a .toml file") from None
    except UnicodeDecodeError as error:
        raise InputError(where, "", f"is not UTF-8 text (byte {error.start})", "save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise InputError(where, "", f"cannot be read: {error}", "check the path and its permissions") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Raises
    ------
    InputError
        With key ``"line N"`` if the text is not valid TOML.

    Examples
    --------
    >>> parse_toml("a = 1", "s.toml")
    {'a': 1}
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        line = place[1] if place and place[1] else str(text.count("\n") + 1)
        problem = _PLACE.sub("", message)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, towers of brackets
        line, problem = "1", str(error)
    raise InputError(where, f"line {line}", f"not valid TOML: {problem}", "correct the syntax")


def format_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return `tables` as a TOML document, in their order.

    Examples
    --------
    >>> print(format_toml({"system": {"D": 4}, "costs": {"moe": {"floor": 1e-5}}}), end="")
    [system]
    D = 4
    <BLANKLINE>
    [costs]
    moe = { floor = 1e-05 }
    """
    blocks = (
        "\n".join([f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())])
        for name, table in tables.items()
    )
    return "\n\n".join(blocks) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"cannot write {value!r} as TOML")


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", escaped) + '"'
