"""What the tests of counting on paper share."""

import pytest


@pytest.fixture
def by_rules_alone(monkeypatch):
    """Whatever torch this is, the atlas that comes with the package says nothing of it."""
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: ("2.99.0", None))


@pytest.fixture
def without_costs(monkeypatch):
    """What a graph break costs is not worked out, which takes as long as the count itself."""
    monkeypatch.setattr("kernelcount.capture.on_paper.MOST_OPS", 0)
