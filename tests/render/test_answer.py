"""The sentence that answers, where the screens do not show it already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelcount.model import Note, Unmeasured
from kernelcount.render.answer import answer_read, answer_run, legend, notes
from kernelcount.render.figures import figures

from . import samples


def said(*outcomes):
    """All statements on a run, the loud ones in capitals."""
    statements = answer_run([figures(o) for o in outcomes])
    return [s.text.upper() if s.loud else s.text for s in statements]


def kernels(name, count, **given):
    return samples.capture(name, *[("k", "kernel", None, 1_000)] * count, **given)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (3, 0, "b launches no kernel, a 3."),
        (0, 3, "b launches 3 kernels, a none."),
        (0, 0, "No kernel: neither a nor b launches any."),
        (3, 1, "b launches 1 kernel instead of 3. Its kernel takes 1 µs instead of 3 µs."),
    ],
)
def test_counts_are_compared_in_plain_words(before, after, sentence):
    assert said(kernels("a", before), kernels("b", after)) == [sentence]


def test_nothing_is_called_faster():
    assert not [s for s in said(samples.eager(), samples.compiled()) if "faster" in s]


def test_times_that_are_partly_missing_are_not_compared():
    partly = samples.capture("b", ("k", "kernel", None, 5), ("k", "kernel", None, None))
    assert said(kernels("a", 3), partly) == ["b launches 2 kernels instead of 3."]


def test_an_incomplete_capture_concludes_nothing_even_where_it_was_measured():
    lost = kernels("b", 1, complete=False)
    assert said(kernels("a", 3), lost) == [
        "UNKNOWN FOR B: NOT EVERY LAUNCH HAS ITS DEVICE RECORD. NOTHING IS CONCLUDED.",
        "a launches 3 kernels. They take 3 µs.",
    ]


def test_cpu_kernels_that_could_not_be_seen_are_unknown_and_no_win():
    note = Note("generated-unknown", "cannot tell on torch 2.11 what Inductor generated")
    compiled = samples.capture("compile", environment=samples.CPU, notes=(note,))
    assert said(samples.on_cpu().outcomes[0], compiled) == [
        "UNKNOWN FOR COMPILE: CANNOT TELL ON TORCH 2.11 WHAT INDUCTOR GENERATED."
        " NOTHING IS CONCLUDED.",
        "eager runs 2 operations.",
        "No GPU was involved: these are CPU operations, not GPU kernels.",
    ]
    assert figures(compiled).generated is None


def test_a_compiled_variant_is_told_alone_where_eager_is_unknown():
    assert said(Unmeasured("a", "out of memory."), kernels("b", 1)) == [
        "UNKNOWN FOR A: OUT OF MEMORY. NOTHING IS CONCLUDED.",
        "b launches 1 kernel. It takes 1 µs.",
    ]


def test_an_unstable_capture_without_a_note_is_warned_of_all_the_same():
    assert said(kernels("a", 1, stable=False))[1:] == [
        "CAREFUL: REPEATED CALLS DID NOT LAUNCH THE SAME KERNELS."
    ]


def test_what_warns_of_two_variants_is_said_once():
    note = Note("recompiled", "the counted call compiled")
    both = [kernels(name, 1, notes=(note,)) for name in "abc"]
    assert said(kernels("first", 1), *both)[-1] == (
        "CAREFUL WITH A, B, C: THE COUNTED CALL COMPILED."
    )


def test_a_gpu_count_and_a_cpu_count_are_never_compared():
    on_cpu = samples.on_cpu().outcomes[0]
    assert said(kernels("gpu", 1), replace(on_cpu, name="cpu")) == [
        "gpu launches 1 kernel. It takes 1 µs. cpu runs 2 operations.",
        "No GPU was involved: these are CPU operations, not GPU kernels.",
    ]


def test_a_note_that_is_the_reason_is_not_repeated():
    seen = kernels("x", 1, notes=(Note("truncated", "the file ends early"), Note("b", "c")))
    entry = figures(Unmeasured("x", "The file ends early", replace(seen, complete=False)))
    assert [s.text for s in answer_read(entry)] == ["Unknown: The file ends early."]
    assert notes([replace(entry, reason="the file ends early.")]) == ["c."]


def test_a_file_without_kernels_holds_0_kernels():
    assert [s.text for s in answer_read(figures(kernels("x", 0)))] == ["0 kernels."]


def test_the_legend_explains_only_what_is_shown():
    assert legend([figures(Unmeasured("x", "y"))]) == ""
    assert "copies" not in legend([figures(kernels("x", 1))])
    assert legend([figures(kernels("x", 1, graph_launches=1))]).endswith("for a CUDA graph.")
