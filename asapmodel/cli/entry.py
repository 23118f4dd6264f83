"""The entry point: every way a command can end becomes an exit status, every failure one line on standard error.

Light to import, so that even an early Ctrl-C finds `main` in charge.
"""

import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from types import FrameType
from typing import TYPE_CHECKING

from asapmodel.errors import AsapError

if TYPE_CHECKING:
    from typer import TyperException

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130  # as a shell reports SIGINT

_OBJECTS = 50_000  # made between two looks for cycles: with Python's 700 a tenth of a short command is looking


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        Exit status: 0 answer, 1 no answer or internal error, 2 bad input, 130 interrupted.
    """
    given = sys.argv[1:] if arguments is None else arguments
    with _interrupts() as seen:
        try:
            status = _run(given)
            sys.stdout.flush()
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BrokenPipeError:  # the reader, say `head`, has enough; nothing more is to be written, not even at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except Exception as error:
            # An interrupt that came while a library could not be left surfaces as an error of that library.
            message, status = ("", INTERRUPTED) if seen else _failure(error, given)
            if message:
                print(f"asapmodel: error: {message}", file=sys.stderr)
    if status == INTERRUPTED:
        print("asapmodel: interrupted", file=sys.stderr)
        # Where an interrupt passed through an `exec` of text, as in `dataclasses`, CPython means to die of the
        # signal in place of exiting with a status; the next such `exec` makes it forget.
        exec("")
    return status


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Take note of SIGINT while the block runs; the list holds one entry for each."""
    seen: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    # Not where it is ignored (`nohup`) or handled by whoever called us.
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(arguments: Sequence[str]) -> int:
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    # Before NumPy is loaded: on matrices as small as ours threads of linear algebra wait for each other, awake.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Before pydantic is: it would read what every installed package says of itself, and no plugin is of use here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    from typer.main import get_command

    from asapmodel.cli.app import COMMANDS, make_app

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a letter shows "?", and the answer goes on
    app = make_app(arguments[:1]) if arguments and arguments[0] in COMMANDS else make_app()
    status = get_command(app).main(list(arguments), prog_name="asapmodel", standalone_mode=False)
    return status if isinstance(status, int) else 0


def _failure(error: Exception, arguments: Sequence[str]) -> tuple[str, int]:
    """Message and exit status of a failure."""
    from typer import TyperException

    if isinstance(error, AsapError):
        return " ".join(str(error).split()), error.exit_status
    if isinstance(error, TyperException):
        return _usage(error, arguments), 2
    if os.environ.get("ASAPMODEL_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
    if isinstance(error, MemoryError):
        return "not enough memory; lower the rate or workload.duration", 1
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"internal error, please report ({what}); set ASAPMODEL_DEBUG=1 for the traceback", 1


def _usage(error: "TyperException", arguments: Sequence[str]) -> str:
    """What is wrong with the command line and the remedy, in one line."""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    if context is None:  # a value too few or too many; the command is the first word
        return f"{message}; see '{' '.join(['asapmodel', *arguments[:1]])} --help'"
    if message.startswith("no such command"):
        commands = sorted(context.command.commands)
        word = next((text for text in arguments if not text.startswith("-")), "")
        return f"no command '{word}'; the nearest is '{_nearest(word, commands)}' of {', '.join(commands)}"
    option = getattr(error, "option_name", None)
    if option is not None and message.startswith("no such option"):
        known = [name for one in context.command.params for name in one.opts if name.startswith("--")]
        return f"no option '{option}'; the nearest is '{_nearest(option, known)}'"
    return f"{message}; see '{context.command_path} --help'"


def _nearest(word: str, known: Sequence[str]) -> str:
    # As `asapmodel.tables.nearest`, whose module takes long to import.
    return max(known, key=lambda name: SequenceMatcher(None, word, name).ratio())
