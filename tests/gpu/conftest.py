"""Without a GPU these tests are skipped, not passed."""

import pytest


def pytest_collection_modifyitems(items):
    import torch

    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))
