"""Runs the code of a page whose front matter says ``execute: true``, and shows what comes out.

Blocks marked ``python`` run in order, in one namespace and one empty folder a page. Below each come
its printed lines and the value of its last line: text, the HTML with which an object shows itself
in a notebook, a Matplotlib figure as a picture, or the path of an HTML page, which is then part of
the site. Of a block marked ``python hidden`` only these are shown. Lines ``$ nlsf ...`` of a
``console`` block are run as the command line runs them. Blocks with another mark, ``sh`` for
example, are only shown. An error anywhere ends the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_BLOCK = re.compile(
    r"^```(python|python hidden|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL
)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with the outputs of its blocks below them."""
    if not page.meta.get("execute"):
        return markdown
    source = page.file.src_uri

    def keep(name: str, content: bytes) -> str:
        """Adds a file beside the page; gives its name there."""
        name = f"{Path(source).stem}-{name}"
        files.append(File.generated(config, str(Path(source).with_name(name)), content=content))
        return name

    namespace: dict[str, Any] = {"__name__": "__main__"}

    def block(match: re.Match[str]) -> str:
        kind, code = match.groups()
        try:
            if kind == "console":
                return f"```console\n{_commands(code)}```"
            result = _result(*_run(code, source, namespace), keep)
            return result if kind == "python hidden" else f"{match[0]}{result}"
        except (Exception, SystemExit) as error:
            raise PluginError(f"{source}: this block failed:\n{code}\n{_story(error)}") from error

    with _own_folder(Path(source).stem):
        return _BLOCK.sub(block, markdown)


@contextlib.contextmanager
def _own_folder(name: str) -> Iterator[None]:
    """An empty working folder, with a cache in it, so that a page neither finds nor leaves any."""
    import torch

    before = os.environ.copy()
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, name)
        folder.mkdir()
        os.environ |= {"NLSF_CACHE": f"{parent}/cache", "COLUMNS": "80", "NO_COLOR": "1"}
        torch.manual_seed(0)
        try:
            with contextlib.chdir(folder):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run(code: str, source: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What the block prints, and the value of its last line."""
    tree = ast.parse(code, source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, source, "exec"), namespace)
        value = last and eval(compile(ast.Expression(last.value), source, "eval"), namespace)
    return printed.getvalue(), value


def _commands(code: str) -> str:
    """The lines of a console, each command followed by what it prints."""
    from nlsf.cli import app

    lines = []
    for line in code.splitlines():
        lines.append(f"{line}\n")
        if line.startswith("$ nlsf "):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                app(shlex.split(line, comments=True)[2:], standalone_mode=False)
            lines.append("".join(f"{row.rstrip()}\n" for row in printed.getvalue().splitlines()))
    return "".join(lines)


def _result(printed: str, value: Any, keep: Callable[[str, bytes], str]) -> str:
    """Markdown for the outputs of a block; nothing where there is none."""
    parts = [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
    if isinstance(value, Path) and value.suffix == ".html":
        name = keep(value.name, value.read_bytes())
        parts.append(f"[Open {value.name}]({name}){{ target=_blank }}")
    elif hasattr(value, "savefig"):
        drawn = io.BytesIO()
        value.savefig(drawn, format="svg", metadata={"Date": None})
        title = value.get_suptitle() or value.axes[0].get_title()
        name = re.sub(r"\W+", "-", title.lower()).strip("-") + ".svg"
        parts.append(f"![{title}]({keep(name, drawn.getvalue())})")
    elif hasattr(value, "_repr_html_"):
        # Without line breaks: a blank one would end the HTML for Markdown.
        parts.append(f'<div markdown="0">{" ".join(value._repr_html_().split())}</div>')
    elif value is not None:
        parts.append(f"```text\n{value!r}\n```")
    inside = "\n\n".join(parts)
    return f'\n\n<div class="result" markdown="1">\n\n{inside}\n\n</div>' if parts else ""


def _story(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
