"""The atlas: what was recorded, where it applies, and how it is recorded."""

import pytest

from kernelcount.devices import fake
from kernelcount.errors import UnreadableError
from kernelcount.paper import atlas
from kernelcount.paper.rules import AT_LEAST_ONE, Cost, Op
from tests.gpu.record_atlas import Case, record


def op(name, parameters, *shape):
    import torch

    x = torch.empty(shape, device="meta")
    return Op(name, "aten", (x,), {}, [x], [x.clone()], parameters=parameters)


@pytest.fixture
def torch_2_11(monkeypatch):
    """The torch that the atlas of the package was recorded with."""
    monkeypatch.setattr("kernelcount.paper.atlas._this_torch", lambda: "2.11.1+cu128")


@pytest.mark.usefixtures("torch_2_11")
def test_a_recorded_call_is_counted_and_its_source_is_told():
    cost, said = atlas.refined(op("topk", "k=10", 1024, 1024), AT_LEAST_ONE, "H200")
    assert cost == Cost(20)
    assert said == "topk: 20 kernels, as recorded on an H200 with torch 2.11.0"


@pytest.mark.usefixtures("torch_2_11")
@pytest.mark.parametrize("card", ["H100", "A100", "B200", ""])
def test_nothing_is_carried_over_to_another_card(card):
    call = op("topk", "k=10", 1024, 1024)
    assert atlas.refined(call, AT_LEAST_ONE, card) == (AT_LEAST_ONE, None)


@pytest.mark.parametrize("torch", ["2.10.2", "2.12.0+cu130", "2.13.0", "2.1"])
def test_nothing_is_carried_over_to_another_torch(torch, monkeypatch):
    monkeypatch.setattr("kernelcount.paper.atlas._this_torch", lambda: torch)
    call = op("topk", "k=10", 1024, 1024)
    assert atlas.refined(call, AT_LEAST_ONE, "H200") == (AT_LEAST_ONE, None)


@pytest.mark.usefixtures("torch_2_11")
@pytest.mark.parametrize(
    "other", [op("topk", "k=11", 1024, 1024), op("topk", "k=10", 1024, 1025), op("mode", "", 4)]
)
def test_nothing_is_carried_over_to_another_call(other):
    assert atlas.refined(other, AT_LEAST_ONE, "H200") == (AT_LEAST_ONE, None)


@pytest.mark.usefixtures("torch_2_11")
def test_a_rule_is_not_overruled():
    assert atlas.refined(op("topk", "k=10", 1024, 1024), Cost(1), "H200") == (Cost(1), None)


def test_an_atlas_is_read_as_it_was_written(tmp_path):
    entries = atlas.load(atlas.FILE)
    path = tmp_path / "atlas.json"
    path.write_text(atlas.dump(entries))
    assert atlas.load(path) == entries


def test_what_is_no_atlas_is_refused(tmp_path):
    path = tmp_path / "atlas.json"
    path.write_text("[]")
    with pytest.raises(UnreadableError, match="no atlas"):
        atlas.load(path)


def test_recording_counts_what_the_device_ran(tmp_path):
    import torch

    def call(x):
        fake.launch("radix_sort", kernels=3, op="aten::sort")
        return torch.sort(x)

    case = Case("sort", call, lambda device: [torch.ones(8, device=device)])
    (entry,) = record(fake.Fake(), "cpu", tmp_path, lambda _: None, iter([case]))
    assert (entry.op, entry.dtype, entry.shapes, entry.kernels) == ("sort", "float32", ((8,),), 3)
    assert entry.source.startswith("recorded on an fake device with torch ")


def test_a_call_that_does_not_launch_the_same_twice_is_left_out(tmp_path):
    import torch

    counts = iter((1, 1, 2))

    def call(x):
        fake.launch("k", kernels=next(counts))
        return torch.sort(x)

    steady = Case("sort", torch.sort, lambda _: [torch.ones(4)])
    shaky = Case("sort", call, lambda _: [torch.ones(8)])
    entries = record(fake.Fake(), "cpu", tmp_path, lambda _: None, iter([steady, shaky]))
    assert [e.shapes for e in entries] == [((4,),)]
