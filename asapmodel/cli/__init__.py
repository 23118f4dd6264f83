"""The command line: ``asapmodel``, or ``python -m asapmodel``.

`entry` turns every ending into an exit status, `app` has the commands, `options` what they have in common and how it is
read, `answers` the tables of answers, `showing` those of scenarios and the catalogue, `text` their numbers, `output`
the ways out. Nothing slow is imported before a command runs, so that help is instant.
"""

from asapmodel.cli.entry import main

__all__ = ["main"]
