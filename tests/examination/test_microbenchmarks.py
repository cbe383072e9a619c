"""What a GPU reaches, on a device with a clock that the tests set."""

import gc
import weakref
from contextlib import contextmanager

import pytest

from kernelcount.conclusions import rates
from kernelcount.devices import fake
from kernelcount.errors import NotMeasuredError
from kernelcount.examination import microbenchmarks
from kernelcount.model import Note

MILLISECOND = 1e6  # nanoseconds


class Clock(fake.Fake):
    """A device on which every call takes a millisecond, and starting takes nothing."""

    waits = 0

    def time(self, calls, between=None):
        for call in calls:
            call()
        return MILLISECOND * len(calls)

    def synchronize(self):
        self.waits += 1


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A device of a hundred multiprocessors, on which nothing is measured for long."""
    monkeypatch.setattr(microbenchmarks, "multiprocessors", lambda *_: 100)
    monkeypatch.setattr(microbenchmarks, "_SECONDS", 0.05)


def measure(device=None, **measurements):
    return microbenchmarks.measure(device or Clock(), "cpu", lambda _: None, measurements)


def fails(error):
    def measurement(device, name):
        raise error

    return measurement


def test_each_figure_stands_where_it_belongs():
    known = {name: lambda *_, n=n: n + 1.0 for n, name in enumerate(rates.FIGURES)}
    found = measure(**known)
    assert list(rates.figures(found).values()) == [n + 1.0 for n in range(len(known))]
    assert (found.device, found.multiprocessors, found.missing) == ("fake device", 100, ())
    assert found.measured_at.endswith("Z")


def test_there_is_a_measurement_of_every_figure():
    assert tuple(microbenchmarks.MEASUREMENTS) == rates.FIGURES


def test_one_that_fails_costs_its_own_figure_alone():
    found = measure(
        copy=fails(MemoryError()),
        copy_l2=lambda *_: 2.0,
        launch_ns=fails(RuntimeError("no such format\n\nin frames of torch")),
        eager_ns=fails(ZeroDivisionError()),
    )
    assert (found.copy, found.copy_l2, found.launch_ns) == (None, 2.0, None)
    assert found.missing == (
        ("copy", "out of memory"),
        ("launch_ns", "no such format"),
        ("eager_ns", "ZeroDivisionError"),
    )


@pytest.mark.parametrize("figure", [0.0, -1.0, float("inf"), float("nan")])
def test_what_cannot_be_is_no_figure(figure):
    found = measure(copy=lambda *_: figure)
    assert found.copy is None
    assert "no time by the clock" in dict(found.missing)["copy"]


def test_what_slows_the_gpu_down_is_said_once():
    class Limited(Clock):
        """Its clock is another one each time."""

        clocks = iter((1500, 1400))

        def disturbed(self):
            return [Note("power-limited", f"its power limit ({next(self.clocks)} of 1980 MHz)")]

    found = measure(Limited(), copy=lambda *_: 1.0, copy_l2=lambda *_: 1.0)
    assert [n.detail for n in found.notes] == ["its power limit (1500 of 1980 MHz)"]


def test_each_is_announced():
    said = []
    both = {"matmul.f32": lambda *_: 1.0, "launch_ns": lambda *_: 1.0}
    microbenchmarks.measure(Clock(), "cpu", said.append, both)
    assert said == ["measuring matmul.f32", "measuring launch"]


def test_a_device_without_multiprocessors_has_no_rates(monkeypatch):
    monkeypatch.setattr(microbenchmarks, "multiprocessors", lambda *_: None)
    with pytest.raises(NotMeasuredError, match="NVIDIA's and AMD's"):
        measure()


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def test_a_copy_is_far_larger_than_the_cache_and_the_better_one_of_two_kinds(monkeypatch):
    """Both take a millisecond: the sum moves three arrays in it."""
    monkeypatch.setattr(fake, "cache", 1 << 10)
    assert microbenchmarks._copy(Clock(), "cpu") == pytest.approx(3 * 16 * (1 << 10) / 1e-3)


def test_a_copy_in_the_cache_is_told_from_its_launch(monkeypatch):
    """A launch of 2 µs, and 5 TB/s: the bytes alone decide."""
    sizes = []

    def graph(call):
        moved = 2 * call.args[0].nbytes
        sizes.append(moved)
        seconds = microbenchmarks._IN_A_GRAPH * (2e-6 + moved / 5e12)
        return lambda: fake.launch("neg", duration_us=seconds * 1e6)

    monkeypatch.setattr(fake, "cache", 64 << 20)
    monkeypatch.setattr(microbenchmarks, "_graph", graph)
    assert microbenchmarks._copy_l2(fake.Fake(), "cpu") == pytest.approx(5e12)
    assert sizes == [16 << 20, 8 << 20]


def test_a_copy_in_the_cache_that_shows_no_difference_is_unknown(monkeypatch):
    monkeypatch.setattr(fake, "cache", 1 << 20)
    monkeypatch.setattr(microbenchmarks, "_graph", lambda call: call)
    with pytest.raises(NotMeasuredError, match="took no longer"):
        microbenchmarks._copy_l2(Clock(), "cpu")


def test_a_cache_of_unknown_size_leaves_both_unknown(monkeypatch):
    monkeypatch.setattr(fake, "cache", None)
    found = measure(copy=microbenchmarks._copy, copy_l2=microbenchmarks._copy_l2)
    reason = "the size of the L2 cache is not known"
    assert found.missing == (("copy", reason), ("copy_l2", reason))


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_a_product_of_matrices_is_2_n_cubed_operations(dtype):
    assert microbenchmarks._matmul(Clock(), "cpu", dtype=dtype, n=8) == pytest.approx(1024 / 1e-3)


class Watching(Clock):
    """Looks in which precision products are computed while it times."""

    def __init__(self):
        self.seen = set()

    def time(self, calls, between=None):
        import torch

        self.seen.add(torch.backends.cuda.matmul.fp32_precision)
        return super().time(calls, between)


@pytest.mark.parametrize(("tf32", "precision"), [(False, "ieee"), (True, "tf32")])
def test_the_precision_of_products_is_set_and_put_back(tf32, precision):
    import torch

    before = torch.backends.cuda.matmul.fp32_precision
    device = Watching()
    microbenchmarks._matmul(device, "cpu", dtype="float32", n=8, tf32=tf32)
    assert device.seen == {precision}
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_the_precision_is_put_back_after_a_failure_too(monkeypatch):
    import torch

    before = torch.backends.cuda.matmul.fp32_precision

    def refuses(a, b, out):
        raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(torch, "mm", refuses)
    with pytest.raises(RuntimeError, match="no kernel image"):
        microbenchmarks._matmul(Clock(), "cpu", dtype="float32", n=8, tf32=True)
    assert torch.backends.cuda.matmul.fp32_precision == before


class Older(Clock):
    """A GPU of NVIDIA's."""

    kind = "cuda"


def test_a_gpu_without_tf32_is_not_measured_in_f32_instead(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda _: (7, 5))
    with pytest.raises(NotMeasuredError, match="has no TF32"):
        microbenchmarks._matmul(Older(), "cpu", dtype="float32", n=8, tf32=True)
    monkeypatch.setattr("torch.version.hip", "7.0")
    with pytest.raises(NotMeasuredError, match="a format of NVIDIA's"):
        microbenchmarks._matmul(Older(), "cpu", dtype="float32", n=8, tf32=True)


# ── launches ─────────────────────────────────────────────────────────────────────────────────────


def test_a_launch_is_one_of_many_in_a_graph(monkeypatch):
    monkeypatch.setattr(microbenchmarks, "_graph", lambda call: call)
    each = microbenchmarks._launch(Clock(), "cpu")
    assert each == pytest.approx(MILLISECOND / microbenchmarks._IN_A_GRAPH)


def test_a_graph_holds_as_many_calls_as_it_says_and_the_arrays_that_they_use(monkeypatch):
    recording, replayed = [], []

    class Graph:
        """Notes what is done with it."""

        def replay(self):
            replayed.append(self)

    @contextmanager
    def graph(_):
        recording.append(True)
        yield
        recording.clear()

    class Kernel:
        """A call with arrays of its own."""

        loaded = recorded = 0

        def __call__(self):
            if recording:
                self.recorded += 1
            else:
                self.loaded += 1

    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    monkeypatch.setattr("torch.cuda.CUDAGraph", Graph)
    monkeypatch.setattr("torch.cuda.graph", graph)
    kernel = Kernel()
    replay = microbenchmarks._graph(kernel)
    assert (kernel.loaded, kernel.recorded, replayed) == (1, 1000, [])
    held = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert held() is not None
    replay()
    assert len(replayed) == 1


def test_without_a_compiler_the_compiled_call_alone_is_unknown(monkeypatch):
    def compiled(x):
        raise RuntimeError("no Triton")

    monkeypatch.setattr("torch.compile", lambda _: compiled)
    found = measure(
        compiled_ns=microbenchmarks.MEASUREMENTS["compiled_ns"], eager_ns=lambda *_: 5.0
    )
    assert (found.eager_ns, found.compiled_ns) == (5.0, None)
    assert found.missing == (("compiled_ns", "no Triton"),)
