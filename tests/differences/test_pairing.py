"""Which variants of two files belong together."""

from kernelcount.differences.pairing import named, paired
from kernelcount.model import Capture, Environment, Side, Target, Unmeasured


def side(name, spec="f.py:f", inputs=(), torch="2.11.0", kind="captures", basis="measured"):
    environment = Environment("NVIDIA H200", "cuda", torch)
    return Side(name, kind, Capture(name, environment, Target(spec, inputs), basis=basis))


def names(before, after):
    found, left, new = paired(before, after)
    return [name for name, *_ in found], [s.name for s in left], [s.name for s in new]


def test_variants_are_paired_by_name_whatever_their_order():
    before, after = [side("eager"), side("compile")], [side("compile"), side("eager")]
    assert names(before, after) == (["eager", "compile"], [], [])


def test_what_only_one_file_has_is_left():
    before, after = [side("eager"), side("compile")], [side("eager"), side("mine.py:g")]
    assert names(before, after) == (["eager"], ["compile"], ["mine.py:g"])


def test_files_of_one_variant_each_are_held_against_each_other_whatever_they_are_called():
    assert names([side("eager")], [side("compile")])[0] == ["eager → compile"]
    assert names([side("a", kind="trace")], [side("b", kind="trace")])[0] == ["trace"]


def test_sizes_of_a_sweep_are_paired_by_their_inputs():
    before = [side("eager", inputs=("f32[100]",)), side("eager", inputs=("f32[1000]",))]
    after = [side("eager", inputs=("f32[1000]",)), side("eager", inputs=("f32[10]",))]
    found, left, new = paired(before, after)
    assert [name for name, *_ in found] == ["eager, f32[1000]"]
    assert [named(s, before) for s in left] == ["eager, f32[100]"]
    assert [named(s, after) for s in new] == ["eager, f32[10]"]


def test_a_function_is_the_same_from_another_folder():
    before = [side("eager", "main/model.py:f"), side("compile", "main/model.py:f")]
    after = [side("eager", "model.py:f"), side("compile", "model.py:f")]
    assert names(before, after) == (["eager", "compile"], [], [])


def test_a_function_may_have_another_name_by_now_where_there_is_no_other():
    before = [side("eager", "a.py:f"), side("compile", "a.py:f")]
    after = [side("eager", "b.py:g"), side("compile", "b.py:g")]
    assert names(before, after)[0] == ["eager", "compile"]


def test_variants_of_another_function_are_not_taken_for_it():
    before = [side("eager", "a.py:f", kind="lock"), side("eager", "a.py:g", kind="lock")]
    after = [side("eager", "a.py:g"), side("compile", "a.py:g")]
    found, left, new = paired(before, after)
    assert [(name, a.capture.target.spec) for name, a, _ in found] == [("a.py:g eager", "a.py:g")]
    assert ([s.name for s in left], [s.name for s in new]) == (["eager"], ["compile"])


def test_of_several_setups_the_one_that_is_alike_is_taken():
    before = [
        side("eager", torch=t, basis=b) for t, b in (("2.11.0", "measured"), ("2.13.0", "paper"))
    ]
    after = [side("eager", torch="2.13.0", basis="paper"), side("compile")]
    found, left, _ = paired(before, after)
    assert [(name, a.capture.basis) for name, a, _ in found] == [
        ("eager, paper torch 2.13.0", "paper")
    ]
    assert len(left) == 1


def test_what_was_not_measured_is_paired_too():
    unmeasured = Side("compile", "captures", Unmeasured("compile", "it hung"))
    before = [side("eager"), side("compile")]
    assert names(before, [side("eager"), unmeasured]) == (["eager", "compile"], [], [])
