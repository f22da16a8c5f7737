"""Drawings for notebooks: small HTML without scripts. What is drawn says itself what it shows.

Lines and letters have the colour of the text around them (``currentColor``), so that light and dark
notebooks can both be read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import torch
from torch import Tensor

# Okabe and Ito: told apart by people who see few colours, on light and on dark.
_BLUE, _ORANGE = "#56B4E9", "#D55E00"
_WIDTH = 480
_BINS = 60
_BOXES = 48
"""Bands or bars that are drawn; a family can have thousands."""


def panel(title: str, facts: Sequence[tuple[str, str]], *drawings: str) -> str:
    """A heading, names with values, and drawings below one another.

    Args:
        title: plain text.
        facts: pairs of plain texts.
        drawings: HTML, as `bars` gives it.
    """
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left;padding:0 1em 0 0;font-weight:normal;'
        f'opacity:.75">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        '<div style="font:13px/1.5 system-ui,sans-serif;max-width:520px">'
        f"<strong>{escape(title)}</strong>"
        f'<table style="border-collapse:collapse;margin:.3em 0"><tbody>{rows}</tbody></table>'
        f"{''.join(drawings)}</div>"
    )


def bars(values: Sequence[float], caption: str, *, line: float = 0.0) -> str:
    """A bar a value, from a level line up or down, with the number of each on hovering.

    Args:
        values: finite or not; what is not finite is left out.
        caption: plain text below the drawing; it also names the drawing for screen readers.
        line: where bars start.
    """
    shown = list(values[:_BOXES])
    finite = [value for value in shown if math.isfinite(value)]
    low, high = min([line, *finite]), max([line, *finite])
    scale = 70 / (high - low or 1.0)
    level = 76 - (line - low) * scale
    step = _WIDTH / max(len(shown), 1)
    parts = []
    for j, value in enumerate(shown):
        if not math.isfinite(value):
            continue
        top = 76 - (max(value, line) - low) * scale
        size = max(abs(value - line) * scale, 0.5)
        parts.append(_box(j * step, top, 0.8 * step, size, _BLUE, f"{j + 1}: {value:.4g}"))
    parts.append(_line([(0, level), (_WIDTH, level)], "currentColor"))
    more = f" (the first {_BOXES} of {len(values):,})" if len(values) > _BOXES else ""
    ends = f"{low:.3g} to {high:.3g}"
    return _figure(parts, 80, f"{caption}{more}; {ends}")


def boxes(places: Sequence[tuple[float, float]], axis: str) -> str:
    """A box for each band, in two colours in turn; nothing where there are no bands.

    Args:
        places: where each begins and ends on the axis.
        axis: what the axis is, plain text.
    """
    if not places:
        return ""
    drawn = places[:_BOXES]
    end = max(high for _, high in drawn) or 1.0
    parts = [_line([(0, 30), (_WIDTH, 30)], "currentColor")]
    for j, (low, high) in enumerate(drawn):
        left, right = _WIDTH * low / end, _WIDTH * high / end
        colour = (_BLUE, _ORANGE)[j % 2]
        text = f"band {j + 1}: {low:.4g} to {high:.4g}"
        parts.append(_box(left, 6, max(right - left - 1, 0.5), 22, colour, text))
    more = f", the first {_BOXES} of {len(places):,} bands" if len(places) > _BOXES else ""
    return _figure(parts, 34, f"{axis}, 0 to {end:.4g}{more}")


def density(frequency: Tensor, end: float, num_nodes: int) -> str:
    """A histogram of frequencies, and their cumulative share as a line.

    Args:
        frequency: (k,), those at hand.
        end: the largest frequency there can be.
        num_nodes: how many there are in all.
    """
    frequency = frequency.cpu()
    count = torch.histc(frequency.clamp(max=end), bins=_BINS, min=0.0, max=end)
    tallest = float(count.max()) or 1.0
    step = _WIDTH / _BINS
    parts = []
    for j, number in enumerate(count.tolist()):
        if number:
            # Square roots, because one heavy eigenvalue would flatten everything else.
            height = 80 * math.sqrt(number / tallest)
            text = f"{j * end / _BINS:.4g} to {(j + 1) * end / _BINS:.4g}: {int(number):,}"
            parts.append(_box(j * step, 84 - height, step - 1, height, _BLUE, text))
    share = (count.cumsum(0) / max(num_nodes, 1)).tolist()
    points = [(0.0, 84.0), *(((j + 1) * step, 84 - 80 * s) for j, s in enumerate(share))]
    parts.append(_line([(0, 84), (_WIDTH, 84)], "currentColor"))
    parts.append(_line(points, _ORANGE, width=2))
    text = (
        f"frequency, 0 to {end:.4g}: number of eigenvalues (bars, heights by square root) and "
        "their cumulative share (line, the top is 100 %)"
    )
    return _figure(parts, 88, text)


def _box(x: float, y: float, width: float, height: float, colour: str, text: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{colour}"><title>{escape(text)}</title></rect>'
    )


def _line(points: Sequence[tuple[float, float]], colour: str, width: int = 1) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _figure(parts: Sequence[str], height: int, caption: str) -> str:
    label = escape(caption, quote=True)
    return (
        '<figure style="margin:.3em 0">'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'style="width:100%;max-width:{_WIDTH}px;height:auto" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
        f'<figcaption style="font-size:12px;opacity:.75">{escape(caption)}</figcaption></figure>'
    )
