"""Reports whose kernels know their lines."""

from dataclasses import replace

from kernelcount.model import Apart, Origin, Place, Provenance, Run, Source
from kernelcount.origins.fusion import align

from . import samples

PLACE = Place("add_relu.py", 5, "add_relu")
ADD, RELU = Origin("add", PLACE), Origin("relu", PLACE)


def eager(*sources, **known):
    given = sources or (Source((ADD,), "forward"), Source((RELU,), "forward"))
    return replace(samples.eager(), provenance=Provenance(given, **known))


def compiled(*sources):
    given = sources or (Source((ADD, RELU), "forward", 0, apart=(Apart("nothing-shared"),)),)
    return replace(samples.compiled(), provenance=Provenance(given))


def report(base, *others):
    """A run whose compiled variants are aligned with the first."""
    whole = samples.run_report(base, *others)
    fusions = (None, *(align(base, other) for other in others))
    return replace(whole, runs=(Run((base, *others), 100_000_000, fusions=fusions),))


def layers(count, name="aten::mul"):
    """Eager ops of one name on several lines of several modules, one of them unknown."""
    sources = [
        Source((Origin("mul", Place("model.py", 5 + i % 2, "forward"), f"layers.{i}.norm"),))
        for i in range(count)
    ]
    works = [(name, "kernel", "mul", 1_000)] * (count + 1)
    return samples.capture("eager", *works, provenance=Provenance((*sources, None)))
