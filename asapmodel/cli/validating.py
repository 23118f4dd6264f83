"""The command `validate`."""

import typer

from asapmodel.cli.options import JsonOption
from asapmodel.cli.output import print_json, progress, show

__all__ = ["validate"]


def validate(as_json: JsonOption = False) -> None:
    """Run the executable reference system and compare it with the model; a minute or two."""
    from asapmodel.verbs.validate import check_count
    from asapmodel.verbs.validate import validate as ask

    with progress("validating", check_count()) as report_step:
        answer = ask(report_step)
    if as_json:
        print_json(answer.to_dict())
    else:
        from asapmodel.cli.answers import validation_answer

        show(*validation_answer(answer))
    if not answer.passed:
        raise typer.Exit(1)
