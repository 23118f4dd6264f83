"""Results on disk as they come, so that an interrupted exploration goes on where it was.

Beside the output `OUT.parquet` stands a folder `OUT.parquet.parts` with one Parquet file a task and `space.json`, which
says of which space they are. Every file takes its name when it is complete. When all is done the output is written and
the folder removed. Without an output results are kept in memory.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapmodel import __version__
from asapmodel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Store", "clear", "read_result", "rewrite_result"]

_KEY = b"asapmodel"


class Store:
    """Parts of one exploration, by stage and name."""

    def __init__(self, output: str | os.PathLike[str] | None, digest: str) -> None:
        """Open or create the folder of parts.

        Raises
        ------
        InputError
            If it cannot be used, or holds parts of another space or version.
        """
        self.output = None if output is None else Path(os.path.realpath(output))
        self.shown = "" if output is None else os.fspath(output)
        self.identity = {"space": digest, "version": __version__}
        self._memory: dict[str, pd.DataFrame] = {}
        if self.output is not None:
            self._open()

    @property
    def folder(self) -> Path:
        """Where the parts are."""
        assert self.output is not None
        return self.output.with_name(self.output.name + ".parts")

    def _open(self) -> None:
        manifest = self.folder / "space.json"
        try:
            self.folder.mkdir(exist_ok=True)
            if manifest.exists():
                found = json.loads(manifest.read_text(encoding="utf-8"))
                if found != self.identity:
                    raise _another(f"{self.shown}.parts", found, self.identity)
            else:
                _atomically(manifest, lambda path: path.write_text(json.dumps(self.identity), encoding="utf-8"))
        except (OSError, ValueError) as error:
            problem = f"cannot be used ({error})"
            raise InputError(f"{self.shown}.parts", "", problem, "remove it, or give another name") from None

    def get(self, name: str) -> pd.DataFrame | None:
        """A part, or None if it is still to be computed."""
        if self.output is None:
            return self._memory.get(name)
        import pandas as pd

        path = self.folder / f"{name}.parquet"
        return pd.read_parquet(path) if path.exists() else None

    def put(self, name: str, part: pd.DataFrame) -> None:
        """Keep a part."""
        if self.output is None:
            self._memory[name] = part
        else:
            _write(self.folder / f"{name}.parquet", part, {}, self.shown)

    def finish(self, table: pd.DataFrame, more: Mapping[str, Any]) -> None:
        """Write the output, with what identifies it and `more` as its metadata, and remove the parts."""
        if self.output is not None:
            _write(self.output, table, {**self.identity, **more}, self.shown)
            shutil.rmtree(self.folder, ignore_errors=True)


def read_result(output: str | os.PathLike[str], digest: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Table and metadata of a finished output of a space; None if there is none.

    Raises
    ------
    InputError
        If the file there is no result, or one of another space or version.
    """
    import pandas as pd
    import pyarrow
    import pyarrow.parquet as pq

    if not Path(output).is_file():
        return None
    shown = os.fspath(output)
    try:
        metadata = json.loads((pq.read_schema(output).metadata or {})[_KEY])
    except (KeyError, ValueError, OSError, pyarrow.ArrowException):
        remedy = "give --force (force=True) to replace it, or another name"
        raise InputError(shown, "", "is no result of an exploration", remedy) from None
    wanted = {"space": digest, "version": __version__}
    if {key: metadata.get(key) for key in wanted} != wanted:
        raise _another(shown, metadata, wanted)
    return pd.read_parquet(output), metadata


def rewrite_result(output: str | os.PathLike[str], digest: str, table: pd.DataFrame) -> None:
    """Replace the table of a finished output, whose metadata stay.

    Raises
    ------
    InputError
        As `read_result`, and if the file cannot be written.
    """
    found = read_result(output, digest)
    assert found is not None
    _write(Path(os.path.realpath(output)), table, found[1], os.fspath(output))


def _another(shown: str, found: Any, wanted: Mapping[str, str]) -> InputError:
    theirs = found if isinstance(found, dict) else {}
    problem = "holds results of another space"
    if theirs.get("space") == wanted["space"]:
        problem = f"was made by asapmodel {theirs.get('version')}, this is {wanted['version']}"
    return InputError(shown, "", problem, "give --force (force=True) to replace it, or another name")


def _write(path: Path, table: pd.DataFrame, metadata: Mapping[str, Any], shown: str) -> None:
    """Write a table; the same table gives the same bytes."""
    import pyarrow
    import pyarrow.parquet as pq

    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    own = {_KEY: json.dumps(metadata, sort_keys=True).encode()}
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **own})
    try:
        _atomically(path, lambda temporary: pq.write_table(arrow, temporary))
    except OSError as error:
        raise InputError(shown, "", f"cannot be written ({error.strerror or error})", "give another name") from None


def _atomically(path: Path, write: Any) -> None:
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear(output: str | os.PathLike[str]) -> None:
    """Remove an output and its parts."""
    target = Path(os.path.realpath(output))
    target.unlink(missing_ok=True)
    shutil.rmtree(target.with_name(target.name + ".parts"), ignore_errors=True)
