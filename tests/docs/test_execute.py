"""Pages with ``execute: true`` show what their code gives, and code that fails ends the build."""

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files

HOOK = Path(__file__).parents[2] / "docs" / "hooks" / "execute.py"


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("execute", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shown(hook):
    """The Markdown of a page after its blocks were run, and the files that it added."""
    files = Files([])

    def run(markdown, execute=True):
        page = SimpleNamespace(
            meta={"execute": execute}, file=SimpleNamespace(src_uri="howto/page.md")
        )
        plugins = SimpleNamespace(_current_plugin="execute")
        config = SimpleNamespace(site_dir="site", use_directory_urls=False, plugins=plugins)
        return hook.on_page_markdown(markdown, page=page, config=config, files=files)

    run.files = files
    return run


def python(code, mark="python"):
    return f"```{mark}\n{code}\n```"


def test_blocks_share_a_namespace_and_show_their_last_line(shown):
    text = shown(f"{python('a = 20')}\n\n{python('print(a + 1)' + chr(10) + 'a + 2')}")
    assert "```text\n21\n```" in text
    assert "```text\n22\n```" in text


def test_pages_do_not_share(shown):
    shown(python("a = 20"))
    with pytest.raises(PluginError, match="NameError"):
        shown(python("a"))


@pytest.mark.parametrize("code", ["1 / 0", "assert False", "raise SystemExit(0)", "a ="])
def test_code_that_fails_ends_the_build(shown, code):
    with pytest.raises(PluginError, match=r"howto/page.md"):
        shown(python(code))


def test_a_command_that_fails_ends_the_build(shown):
    with pytest.raises(PluginError, match="no data set 'cola'"):
        shown(python("$ nlsf train cola", "console"))


def test_commands_show_what_they_print(shown):
    text = shown(python("$ nlsf --version", "console"))
    assert "$ nlsf --version\nnlsf 0." in text


def test_hidden_code_is_run_and_not_shown(shown):
    text = shown(python("40 + 2", "python hidden"))
    assert "42" in text
    assert "40 + 2" not in text


def test_other_blocks_and_other_pages_are_left_alone(shown):
    for markdown, execute in ((python("rm -r x", "sh"), True), (python("1 / 0"), False)):
        assert shown(markdown, execute) == markdown


def test_pages_and_pictures_become_files_of_the_site(shown):
    code = "from pathlib import Path\npath = Path('a.html')\npath.write_text('<p>')\npath"
    figure = "from matplotlib.figure import Figure\nf = Figure()\nf.subplots().set_title('Up')\nf"
    text = shown(f"{python(code)}\n\n{python(figure)}")
    assert "(page-a.html)" in text
    assert "![Up](page-up.svg)" in text
    assert {file.src_uri for file in shown.files} == {"howto/page-a.html", "howto/page-up.svg"}


def test_a_page_leaves_no_files_and_no_settings(shown, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown(python("import os\nopen('left', 'w').close()\nos.environ['NLSF_LEFT'] = '1'"))
    assert not list(tmp_path.iterdir())
    assert "NLSF_LEFT" not in os.environ
