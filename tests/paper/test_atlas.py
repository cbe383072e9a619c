"""The atlas: what was recorded, and where it applies."""

from operator import attrgetter

import pytest

from kernelcount.errors import UnreadableError
from kernelcount.paper import atlas
from kernelcount.paper.atlas import Atlas, Entry
from kernelcount.paper.rules import AT_LEAST_ONE, Cost, Op


def op(name, parameters, *tensors, args=(), written=None):
    import torch

    read = [torch.empty(t, device="meta") if isinstance(t, tuple) else t for t in tensors]
    written = [read[0].clone()] if written is None else written
    return Op(name, "aten", (*read, *args), {}, read, written, parameters=parameters)


def sort(*shape):
    return op("sort", "", shape)


RECORDED = Atlas(
    "H200",
    "2.11.0",
    "13.0",
    (
        Entry("topk", "float32", 20, 0, ("1024x1024",), "k=10"),
        Entry("mm", "float32", 2, 0, ("64x768 768x64",)),
        Entry("mm", "float32", 1, 0, ("64x768 768x64:10",)),
        Entry("index", "float32,bool", 4, 1, ("8*2",)),
        Entry("sort", "float32", 2, 3, ("2", "90", "4096"), klass="rows 1, length 2-4096"),
    ),
)


@pytest.fixture
def recorded(monkeypatch):
    """An atlas of a few calls, and the torch that it was recorded with."""
    monkeypatch.setattr("kernelcount.paper.atlas.shipped", lambda: RECORDED)
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: ("2.11.1+cpu", None))


TOPK = ("topk", "k=10", (1024, 1024))


@pytest.mark.usefixtures("recorded")
def test_a_recorded_call_is_counted_and_its_source_is_told():
    cost, said = atlas.refined(op(*TOPK), AT_LEAST_ONE, "H200")
    assert cost == Cost(20)
    assert said == "topk: 20 kernels, as recorded on an H200 with torch 2.11.0 (CUDA 13.0)"


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("card", ["H100", "A100", "B200", ""])
def test_nothing_is_carried_over_to_another_card(card):
    assert atlas.refined(op(*TOPK), AT_LEAST_ONE, card) == (AT_LEAST_ONE, None)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("torch", ["2.10.2", "2.12.0+cu130", "2.13.0", "2.1"])
def test_nothing_is_carried_over_to_another_torch(torch, monkeypatch):
    monkeypatch.setattr("kernelcount.paper.atlas.this_torch", lambda: (torch, None))
    assert atlas.refined(op(*TOPK), AT_LEAST_ONE, "H200") == (AT_LEAST_ONE, None)


@pytest.mark.parametrize(("cuda", "applies"), [("13.0", True), (None, True), ("12.8", False)])
def test_a_torch_built_for_another_cuda_has_other_libraries(cuda, applies):
    assert RECORDED.applies("H200", "2.11.1", cuda) is applies


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "other",
    [("topk", "k=11", (1024, 1024)), ("topk", "k=10", (1024, 1025)), ("mode", "", (4,))],
)
def test_nothing_is_carried_over_to_another_call(other):
    assert atlas.refined(op(*other), AT_LEAST_ONE, "H200") == (AT_LEAST_ONE, None)


@pytest.mark.usefixtures("recorded")
def test_the_layout_of_a_matrix_decides():
    import torch

    x, weight = torch.empty(64, 768), torch.empty(64, 768).t()
    assert RECORDED.find(op("mm", "", x, torch.empty(768, 64))).kernels == 2
    assert RECORDED.find(op("mm", "", x, weight)).kernels == 1
    assert RECORDED.find(op("mm", "", x, torch.empty(768, 128)[:, :64])) is None


def test_an_operand_that_begins_off_the_grid_is_another_call():
    import torch

    x = torch.empty(64 * 768 + 1)[1:].view(64, 768)
    assert RECORDED.find(op("mm", "", x, torch.empty(768, 64))) is None


def test_a_mask_is_told_from_indices_of_the_same_shape():
    import torch

    x, mask = torch.empty(8), torch.empty(8, dtype=torch.bool)
    assert RECORDED.find(op("index", "", x, mask)).kernels == 4
    assert RECORDED.find(op("index", "", x, mask.long())) is None


def test_within_a_class_of_shape_every_size_is_known():
    assert [RECORDED.find(sort(n)).kernels for n in (2, 3, 1000, 4096)] == [2, 2, 2, 2]


@pytest.mark.parametrize("shape", [(1,), (4097,), (2, 1000)])
def test_beyond_a_class_nothing_is_known(shape):
    assert RECORDED.find(sort(*shape)) is None


def test_a_class_is_of_whole_rows_in_order():
    import torch

    assert RECORDED.find(op("sort", "", torch.empty(2000)[::2])) is None
    assert RECORDED.find(op("sort", "", torch.empty(100, 1), args=(0,))) is None


@pytest.mark.usefixtures("recorded")
def test_a_rule_is_not_overruled():
    assert atlas.refined(op(*TOPK), Cost(1), "H200") == (Cost(1), None)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("switch", "value"),
    [("torch.backends.cudnn.benchmark", True), ("torch.backends.cudnn.enabled", False)],
)
def test_where_torch_chooses_kernels_otherwise_the_atlas_is_silent(switch, value, monkeypatch):
    monkeypatch.setattr(switch, value)
    assert atlas.refined(op(*TOPK), AT_LEAST_ONE, "H200") == (AT_LEAST_ONE, None)


@pytest.mark.parametrize(
    ("where", "name", "value", "at_first"),
    [
        ("cuda.matmul", "allow_tf32", True, False),
        ("cuda.matmul", "fp32_precision", "tf32", "none"),
        ("cuda.matmul", "allow_bf16_reduced_precision_reduction", False, True),
        ("cuda.matmul", "allow_fp16_accumulation", True, False),
        ("cudnn", "allow_tf32", False, True),
        ("cudnn", "deterministic", True, False),
    ],
)
def test_every_switch_that_chooses_other_kernels_is_seen(where, name, value, at_first):
    import torch

    backend = attrgetter(where)(torch.backends)
    assert atlas.as_by_default()
    try:
        setattr(backend, name, value)
        assert not atlas.as_by_default()
    finally:
        setattr(backend, name, at_first)
    assert atlas.as_by_default()


@pytest.mark.parametrize(
    ("name", "multiprocessors", "card"),
    [
        ("NVIDIA H100 80GB HBM3", 132, "H100"),
        ("NVIDIA H100 PCIe", 114, "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", 108, "A100"),
        ("NVIDIA L40S", 142, "L40S"),
        ("NVIDIA A10G", 72, "A10G"),
        ("Tesla T4", 40, "T4"),
        ("AMD Instinct MI300X", None, "AMD Instinct MI300X"),
    ],
)
def test_a_card_bears_the_name_of_the_table_where_it_is_that_card(name, multiprocessors, card):
    assert atlas.card_called(name, multiprocessors) == card


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def test_an_atlas_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "atlas.json"
    path.write_text(atlas.dump(RECORDED), encoding="utf-8")
    assert atlas.load(path) == RECORDED


def test_the_atlas_of_the_package_can_be_read_and_reviewed():
    there = atlas.load(atlas.FILE)
    assert (there.card, atlas.series(there.torch)) == ("H200", "2.11")
    assert len(atlas.FILE.read_bytes()) < 200_000
    keys = [
        (e.op, e.dtype, e.parameters, e.klass, call)
        for e in there.entries
        for call in (e.calls if e.klass is None else ("",))
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("[]", "no atlas"), ('{"kernelcount_atlas": 1}', "of another version.*--record-atlas")],
)
def test_what_is_no_atlas_is_refused(text, reason, tmp_path):
    path = tmp_path / "atlas.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match=reason):
        atlas.load(path)


@pytest.mark.filterwarnings("ignore")
def test_an_atlas_that_was_asked_for_and_is_none_is_told_of_at_once(tmp_path, monkeypatch):
    from kernelcount.paper.gpu import of_card

    broken = tmp_path / "mine.json"
    broken.write_text("{}")
    monkeypatch.setattr(atlas, "FILE", broken)
    atlas.shipped.cache_clear()
    try:
        with pytest.raises(UnreadableError, match=r"mine.json: .*KERNELCOUNT_ATLAS names it"):
            of_card("H200")
    finally:
        atlas.shipped.cache_clear()
