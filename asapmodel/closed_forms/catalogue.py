"""All closed forms, and how the documentation prints one."""

from collections.abc import Mapping
from types import MappingProxyType

import sympy

from asapmodel.closed_forms.barriers import BARRIER_FORMS
from asapmodel.closed_forms.exclusive import EXCLUSIVE_FORMS
from asapmodel.closed_forms.experts import EXPERT_FORMS
from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.host import HOST_FORMS
from asapmodel.closed_forms.interleaving import INTERLEAVING_FORMS
from asapmodel.closed_forms.pair import PAIR_FORMS
from asapmodel.closed_forms.saturation import SATURATION_FORMS
from asapmodel.closed_forms.split import SPLIT_FORMS

__all__ = ["BY_NAME", "FORMS", "markdown"]

FORMS: tuple[ClosedForm, ...] = (
    *PAIR_FORMS,
    *SATURATION_FORMS,
    *INTERLEAVING_FORMS,
    *EXCLUSIVE_FORMS,
    *EXPERT_FORMS,
    *SPLIT_FORMS,
    *BARRIER_FORMS,
    *HOST_FORMS,
)
"""Every closed form, in the order of the page of the documentation."""

BY_NAME: Mapping[str, ClosedForm] = MappingProxyType({form.name: form for form in FORMS})
"""The same by name."""


def markdown(form: ClosedForm) -> str:
    r"""The block that stands for a form in the documentation: name, kind, assumption, domain, error, formula.

    Examples
    --------
    >>> print(markdown(BY_NAME["dispatch_ttft"]))
    **`dispatch_ttft`** (exact, s): what host dispatch adds to the time of a lone batch.
    Assumes: one batch in the system.
    <BLANKLINE>
    ```math
    \Delta = L h
    ```
    """
    head = f"**`{form.name}`** ({form.kind}, {form.unit}): {form.meaning}."
    lines = [head, f"Assumes: {form.assumption}."]
    if form.domain is not sympy.true:
        lines.append(f"Domain: `{form.domain}`.")
    if form.error:
        lines.append(f"Error: {form.error}.")
    return "\n".join([*lines, "", "```math", form.latex(), "```"])
