"""GitHub's annotations: at which file they are shown."""

from pathlib import Path

import pytest

from kernelcount.model import Place
from kernelcount.render import github
from kernelcount.render.findings import Finding, Findings


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("{here}/src/net.py", "src/net.py"),
        ("src/net.py", "src/net.py"),
        ("../net.py", "../net.py"),
        ("/elsewhere/net.py", "/elsewhere/net.py"),
    ],
)
def test_files_are_named_from_the_current_folder_where_they_are_inside_of_it(
    tmp_path, monkeypatch, file, shown
):
    monkeypatch.chdir(tmp_path)
    place = Place(file.format(here=Path.cwd()), 6)
    finding = Finding("net.py:f", "compile: kernels", "broken", "kernels 2", (), (place,))
    (annotation, _) = github.render(Findings("check", (finding,), "1 broken")).splitlines()
    assert annotation.startswith(f"::error file={shown},line=6,title=net.py%3Af")
