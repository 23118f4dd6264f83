"""The page of the documentation shows every form as the code renders it, and no other formula."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from asapmodel.closed_forms.catalogue import FORMS, markdown
from asapmodel.closed_forms.form import ClosedForm

PAGE = Path(__file__).resolve().parents[2] / "docs" / "background" / "closed-forms.md"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_page_shows_the_form(form: ClosedForm) -> None:
    assert PAGE.read_text(encoding="utf-8").count(markdown(form)) == 1
    assert f"## {form.section}\n" in PAGE.read_text(encoding="utf-8").split(markdown(form))[0]


def test_page_shows_no_other_formula() -> None:
    blocks = re.findall(r"^```math\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert sorted(blocks) == sorted(form.latex() for form in FORMS)


def test_forms_stand_under_their_sections() -> None:
    content = PAGE.read_text(encoding="utf-8")
    for form in FORMS:
        section = re.findall(r"^## (.*)$", content.split(markdown(form))[0], re.MULTILINE)[-1]
        assert section == form.section


def test_rendering_does_not_depend_on_the_hash_seed() -> None:
    code = "from asapmodel.closed_forms.catalogue import *; print('\\n'.join(map(markdown, FORMS)))"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment, cwd=PAGE.parents[2])
    assert done.stdout.splitlines() == "\n".join(map(markdown, FORMS)).splitlines()
