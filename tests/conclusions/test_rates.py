"""What GPUs were measured to reach: kept in a file, and believed only where it is one of ours."""

import json
import os
import sys
from dataclasses import asdict, replace

import pytest

from kernelcount.conclusions import rates
from kernelcount.errors import UnreadableError, UsageError
from kernelcount.model import Note, Rates

REACHED = Rates(
    "NVIDIA H200", "2.11.0", 132, 4e12, None, (("f32", 5e13), ("bf16", 7e14)), 1.5e3, 4e3, 2e4,
    missing=(("copy_l2", "unknown"),), notes=(Note("gpu-shared", "it is shared"),),
    measured_at="2026-01-01T00:00:00Z",
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache folder of our own, which is not there yet."""
    monkeypatch.setenv("KERNELCOUNT_CACHE", str(tmp_path / "a" / "cache"))
    return tmp_path / "a" / "cache"


def test_what_is_kept_is_found_again():
    path = rates.keep(REACHED)
    assert path == rates.file()
    assert rates.kept("NVIDIA H200", "2.11.0") == REACHED


def test_before_anything_is_kept_nothing_is_known(cache):
    assert rates.kept("NVIDIA H200", "2.11.0") is None
    assert not cache.exists()


def test_there_is_one_entry_for_each_gpu_and_torch():
    other = replace(REACHED, torch="2.13.0", copy=3e12)
    again = replace(REACHED, copy=4.1e12)
    card = replace(REACHED, device="NVIDIA L4", copy=None)
    for one in (REACHED, other, again, card):
        rates.keep(one)
    assert rates.kept("NVIDIA H200", "2.11.0") == again
    assert rates.kept("NVIDIA H200", "2.13.0") == other
    assert rates.kept("NVIDIA L4", "2.11.0") == card
    assert rates.kept("NVIDIA L4", "2.13.0") is None
    assert len(json.loads(rates.file().read_text())["rates"]) == 3


def entry(**changes):
    """The text of a file with one entry, changed so."""
    return json.dumps({"kernelcount_rates": 1, "rates": [{**asdict(REACHED), **changes}]})


FOREIGN = {
    "cut short": entry()[:-20],
    "empty": "",
    "no JSON": "EUR 1.08",
    "somebody else's": '{"rates": {"EUR": 1.08}}',
    "a list": "[1]",
    "of another version": entry().replace('"kernelcount_rates": 1', '"kernelcount_rates": 2'),
    "with a zero": entry(copy=0),
    "with a negative rate": entry(matmul=[["f32", -1.0]]),
    "without multiprocessors": entry(multiprocessors=0),
    "with a word for a number": entry(launch_ns="fast"),
    "with more than a number holds": entry(copy=1).replace('"copy": 1', '"copy": 1e999'),
    "too deep": "[" * 100_000,
    "too large": entry(device="x" * (1 << 20)),
    "no text": "\udcff",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_a_damaged_or_foreign_file_is_not_believed_and_not_written_over(cache, text):
    cache.mkdir(parents=True)
    data = text.encode(errors="surrogateescape")
    rates.file().write_bytes(data)
    assert rates.kept("NVIDIA H200", "2.11.0") is None
    with pytest.raises(UnreadableError, match="delete or move it"):
        rates.keep(REACHED)
    assert rates.file().read_bytes() == data


def test_the_entry_that_the_damaged_ones_come_from_is_believed(cache):
    cache.mkdir(parents=True)
    rates.file().write_text(entry(added_later=True))
    assert rates.kept("NVIDIA H200", "2.11.0") == REACHED


def test_what_is_no_file_is_not_waited_for(cache):
    cache.mkdir(parents=True)
    os.mkfifo(rates.file())
    assert rates.kept("NVIDIA H200", "2.11.0") is None


def test_a_write_that_fails_leaves_what_was_there(cache, monkeypatch):
    rates.keep(REACHED)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(UsageError, match="No space left"):
        rates.keep(replace(REACHED, copy=1.0))
    assert rates.kept("NVIDIA H200", "2.11.0") == REACHED
    assert [path.name for path in cache.iterdir()] == ["rates.json"]


def test_a_folder_that_cannot_be_made_is_told(cache):
    cache.parent.mkdir()
    cache.write_text("a file")
    assert rates.kept("NVIDIA H200", "2.11.0") is None
    with pytest.raises((UsageError, UnreadableError), match=r"rates\.json"):
        rates.keep(REACHED)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"KERNELCOUNT_CACHE": "/k", "XDG_CACHE_HOME": "/x"}, "/k"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/kernelcount"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/kernelcount"),
        ("linux", {"KERNELCOUNT_CACHE": ""}, "/home/me/.cache/kernelcount"),
        ("darwin", {}, "/home/me/Library/Caches/kernelcount"),
        ("darwin", {"XDG_CACHE_HOME": "/x"}, "/x/kernelcount"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/kernelcount"),
    ],
)
def test_the_folder_is_the_one_asked_for_or_the_users_own(
    monkeypatch, platform, environment, expected
):
    for name in ("KERNELCOUNT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", platform)
    assert rates.file().as_posix() == f"{expected}/rates.json"


def test_without_a_home_nothing_is_known_and_the_way_out_is_told(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KERNELCOUNT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    assert rates.kept("NVIDIA H200", "2.11.0") is None
    with pytest.raises(UsageError, match="KERNELCOUNT_CACHE"):
        rates.keep(REACHED)


def test_a_current_folder_that_is_gone_breaks_nothing(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("KERNELCOUNT_CACHE", "relative")
    assert rates.kept("NVIDIA H200", "2.11.0") is None
    with pytest.raises(UsageError, match="KERNELCOUNT_CACHE"):
        rates.keep(REACHED)


def test_figures_by_name_and_back():
    found = rates.figures(REACHED)
    assert tuple(found) == rates.FIGURES
    assert (found["matmul.bf16"], found["matmul.f64"], found["copy_l2"]) == (7e14, None, None)
    bare = replace(REACHED, copy=None, matmul=(), launch_ns=None, eager_ns=None, compiled_ns=None)
    known = {name: value for name, value in found.items() if value is not None}
    assert rates.with_figures(bare, known) == REACHED
