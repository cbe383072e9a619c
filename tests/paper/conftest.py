"""What the tests of counting on paper share."""

import pytest


@pytest.fixture
def by_rules_alone(monkeypatch):
    """Whatever torch this is, the atlas that comes with the package says nothing of it."""
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: ("2.99.0", None))
