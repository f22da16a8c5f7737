"""Turns the formulas of a page into MathML, which browsers show without a script or a font."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

# As arithmatex leaves them in its generic form.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', flags=re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', flags=re.DOTALL)


def on_page_content(content: str, *, page: Page, **_: object) -> str:
    """The page's HTML with MathML in the place of LaTeX."""

    def inline(match: re.Match[str]) -> str:
        return mathml(match[1], page.file.src_uri)

    def display(match: re.Match[str]) -> str:
        return f'<div class="formula">{mathml(match[1], page.file.src_uri, "block")}</div>'

    return _DISPLAY.sub(display, _INLINE.sub(inline, content))


def mathml(escaped: str, where: str, display: str = "inline") -> str:
    """One formula; LaTeX that is not understood is an error, not a hole in the page."""
    latex = html.unescape(escaped).strip()
    # The converter knows brackets that grow by themselves better than those of a given size.
    plain = re.sub(r"\\[Bb]igg?l(?![A-Za-z])", r"\\left", latex)
    plain = re.sub(r"\\[Bb]igg?r(?![A-Za-z])", r"\\right", plain)
    plain = re.sub(r"\\[Bb]igg?(?![A-Za-z])", "", plain)
    if r"\\" in plain and r"\begin" not in plain:
        # Of what the converter makes of several lines, browsers break those of a table only.
        plain = rf"\begin{{matrix}}{plain}\end{{matrix}}"
    try:
        found = convert(plain, display=display)
    except Exception as error:
        raise PluginError(f"{where}: {latex!r} cannot be shown: {error}") from error
    text = re.sub(r"<[^>]*>", "", found)
    if "\\" in text:
        raise PluginError(f"{where}: {latex!r} would be shown as {html.unescape(text)!r}.")
    return found
