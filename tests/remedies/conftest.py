"""What is known of a function, as if it had been counted on the CPU."""

import pytest

from kernelcount import capture, devices, variants
from kernelcount.inputs import Arguments
from kernelcount.model import Capture, Environment, Target
from kernelcount.remedies.facts import Facts


@pytest.fixture
def facts():
    def known(function, *args, counted=None, options=None, **kwargs):
        given = Arguments(args, kwargs)
        device = devices.DEVICES["cpu"]
        subject = capture.Subject(
            Target("f"), given, lambda _: given, device, Environment(), **(options or {})
        )
        way = capture.way(variants.parse("eager"), function)
        return Facts(subject, way, counted or Capture("eager"), {})

    return known
