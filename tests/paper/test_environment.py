"""What a module sets in the environment, and whether that comes too late for the compiler."""

import os

from kernelcount.paper.gpu import set_since


def test_what_the_compiler_had_read_before_is_told(monkeypatch):
    before = dict(os.environ)
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("HOME", "/elsewhere")
    assert set_since(before) == ["TORCHINDUCTOR_MAX_AUTOTUNE"]


def test_what_torch_sets_itself_where_a_function_is_decorated_is_not(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    before = dict(os.environ)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/tmp/torchinductor_me")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/tmp/triton")
    assert set_since(before) == []
