"""Run the command line in this process, or as one."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from asapmodel.cli import main

__all__ = ["SCENARIO", "Answer", "ask", "process"]

SCENARIO = """
[system]
kind = "asap"
D = 2
T = 4
E = 16
[workload]
rate = 3.0
lengths = { constant = 4096 }
duration = "30 s"
"""


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of an error."""
        assert self.out == ""
        assert self.err.startswith("asapmodel: error: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("asapmodel: error: ").rstrip("\n")


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """Run in this process."""
    status = main(arguments)
    captured = capsys.readouterr()
    return Answer(status, captured.out, captured.err)


def process(arguments: Sequence[str], folder: Path | None = None) -> Answer:
    """Run as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "asapmodel", *arguments], capture_output=True, text=True, cwd=folder, timeout=120
    )
    return Answer(done.returncode, done.stdout, done.stderr)
