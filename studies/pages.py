"""What the studies share: Markdown tables, number formatting, figures as SVG files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["markdown_table", "plain", "save_figure", "tidy_spec"]

FONT = "Helvetica, Arial, sans-serif"


def plain(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent where it can be read without.

    Examples
    --------
    >>> plain(20.0), plain(0.000220), plain(12345.6), plain(0.3333)
    ('20', '0.00022', '12346', '0.333')
    """
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
    text = f"{value:.{digits}g}"
    return f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text and abs(value) > 1e-6 else text


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A Markdown table; columns with an index in `right` are right-aligned."""
    rule = ["--:" if k in right else "---" for k in range(len(header))]
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tidy_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification with the look that all figures share."""
    look = {
        "font": FONT,
        "background": "white",
        "axis": {"labelFontSize": 11, "titleFontSize": 12, "gridColor": "#e6e6e6", "titleFontWeight": "normal"},
        "legend": {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 300},
        "title": {"fontSize": 13, "anchor": "start"},
        "view": {"stroke": None},
    }
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": look, **spec}


def save_figure(spec: dict[str, Any], path: Path) -> None:
    """Render a specification to SVG (no browser needed) and write it."""
    import vl_convert

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(tidy_spec(spec), vl_version="5.21"), encoding="utf-8")
