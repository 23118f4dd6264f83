"""Let an uninstalled checkout import `asapmodel.models`, `.solvers` and `.studies` from their sibling folders.

An installed copy has them inside the package and never asks this finder: it stands last on the meta path.
Why this and not `__path__`, links or a flat map: see `docs/background/layout.md`.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = {f"asapmodel.{name}": _ROOT / name for name in ("models", "solvers", "studies")}


class _SiblingFinder:
    """Resolve exactly three package names to folders beside `asapmodel/`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        folder = _FOLDERS.get(name)
        if folder is None or not (folder / "__init__.py").is_file():
            return None
        return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])


def register() -> None:
    """Append the finder once."""
    if _SiblingFinder not in sys.meta_path:
        sys.meta_path.append(_SiblingFinder)
