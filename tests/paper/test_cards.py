"""The table of cards."""

import pytest

from kernelcount.errors import UsageError
from kernelcount.paper.cards import CARDS, LIMITS, cited, device_properties, find, of_device


def test_the_default_is_the_card_whose_library_calls_are_recorded():
    assert find(None).name == "H200"


def test_names_are_read_in_any_case_and_with_their_maker():
    assert find("h100") is find("NVIDIA H100")
    assert find("NVIDIA GeForce RTX 4090") is find("rtx 4090")


def test_another_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean L40S"):
        find("L40")


@pytest.mark.parametrize("card", CARDS.values(), ids=list(CARDS))
def test_every_figure_has_a_source(card):
    assert card.source
    assert card.capability in LIMITS
    assert min(card.multiprocessors, card.memory, card.l2, card.bandwidth) > 0


@pytest.mark.parametrize(
    ("device", "card"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
    ],
)
def test_a_card_is_known_by_what_torch_calls_it(device, card):
    assert of_device(device).name == card


@pytest.mark.parametrize("device", ["NVIDIA L40", "AMD Instinct MI300X", ""])
def test_a_card_without_a_row_is_none(device):
    assert of_device(device) is None


@pytest.mark.parametrize(
    ("name", "clock", "bits"),
    [("H200", 3201, 6016), ("T4", 5001, 256), ("B200", 3996, 7680)],
)
def test_a_data_sheets_bandwidth_is_that_of_the_memorys_clock_and_bus(name, clock, bits):
    """Both as a device query tells them: clock in MHz, two transfers a clock."""
    assert find(name).bandwidth == pytest.approx(2 * clock * 1e6 * bits / 8, rel=0.01)


def test_a_cache_is_counted_in_powers_of_two_as_the_card_does():
    assert find("H200").l2 == 62_914_560, "cudaDevAttrL2CacheSize on an H200"
    assert find("T4").l2 == 4_194_304


def test_the_properties_that_torch_asks_for_are_those_of_a_real_h200():
    properties = device_properties(find("H200"))
    assert properties.total_memory == 150_109_880_320
    assert properties.shared_memory_per_block_optin == 232_448
    assert (properties.name, properties.multi_processor_count) == ("NVIDIA H200", 132)


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_every_card_has_a_cited_rate_for_each_precision_its_tensor_cores_make(card):
    rates = dict(cited(card).matmul)
    assert {"f32", *card.limits.tensor_cores} <= set(rates)
    assert cited(card).copy == card.bandwidth
    assert rates["f16"] > rates["f32"]
