import platform
import runpy
import shutil
import subprocess

import numpy
import pytest
import torch

from nlsf.train.versions import head_commit, versions


def test_versions_are_those_in_use():
    found = versions()
    assert found["torch"] == torch.__version__
    assert found["numpy"] == numpy.__version__
    assert found["python"] == platform.python_version()
    assert found["threads"] == str(torch.get_num_threads())
    assert {"nlsf", "torch_geometric", "scipy", "platform"} <= set(found)
    assert all(isinstance(value, str) for value in found.values())


def test_an_installed_copy_has_no_commit(tmp_path):
    # In the site-packages of an environment that lies inside somebody's own checkout.
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("0" * 40 + "\n")
    place = tmp_path / "site-packages" / "nlsf" / "train"
    place.mkdir(parents=True)
    shutil.copy(versions.__code__.co_filename, place)
    copy = runpy.run_path(str(place / "versions.py"))
    assert "commit" not in copy["versions"]()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@needs_git
def test_the_commit_is_what_git_says(checkout, tmp_path):
    assert head_commit(checkout) is None
    git(checkout, "commit", "-q", "--allow-empty", "-m", "one")
    first = git(checkout, "rev-parse", "HEAD")
    assert head_commit(checkout) == first

    git(checkout, "pack-refs", "--all")
    assert head_commit(checkout) == first

    linked = tmp_path / "linked"
    git(checkout, "worktree", "add", "-q", "-b", "other/name", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "two")
    assert head_commit(linked) == git(linked, "rev-parse", "HEAD") != first
    assert head_commit(checkout) == first

    git(linked, "checkout", "-q", "--detach", first)
    assert head_commit(linked) == first


def test_a_folder_without_git_has_no_commit(tmp_path):
    assert head_commit(tmp_path) is None
    (tmp_path / ".git").write_bytes(b"\xff\xfe")
    assert head_commit(tmp_path) is None
