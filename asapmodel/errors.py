"""What can go wrong, as the command line reports it.

::

    AsapError
    ├── InputError        bad input: names file, key and remedy           (exit status 2)
    └── NoAnswer          the question has no answer: unstable, infeasible  (exit status 1)
"""

__all__ = ["AsapError", "InputError", "NoAnswer"]


class AsapError(Exception):
    """Base of every error this package raises on purpose."""

    exit_status = 1


class InputError(AsapError):
    """Bad input, said in one line.

    Parameters
    ----------
    where : str
        File (or other place) that holds the input, e.g. ``"scenario.toml"``.
    key : str
        Dotted key or row, e.g. ``"policy.batch_windw"`` or ``"row 7"``.
    problem : str
        What is wrong.
    remedy : str
        What to do about it.

    Examples
    --------
    >>> str(InputError("s.toml", "system.D", "is 0", "give a whole number of at least 1"))
    's.toml: system.D: is 0; give a whole number of at least 1'
    """

    exit_status = 2

    def __init__(self, where: str, key: str, problem: str, remedy: str) -> None:
        self.where, self.key, self.problem, self.remedy = where, key, problem, remedy
        super().__init__(where, key, problem, remedy)

    def __str__(self) -> str:
        place = f"{self.where}: {self.key}" if self.key else self.where
        return f"{place}: {self.problem}; {self.remedy}".replace("\n", " ")


class NoAnswer(AsapError):
    """The question has no answer (unstable, infeasible), said in words."""
