"""The pytest plugin: its fixture, its marker, and what is shown where a count is wrong.

They count by stubs (`stubs.py`), so that no run of pytest inside of pytest loads torch; the
examples of docs/pytest.md count for real (`test_examples.py`).
"""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import kernelcount.api
import kernelcount.pytest_budgets  # noqa: F401  here, or each run of pytest would load all anew

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
PLUGIN = ("-p", "kernelcount.pytest_plugin", "-p", "no:cacheprovider")
CONFTEST = f"""
import sys, pytest
sys.path.insert(0, {str(HERE)!r})
import stubs

@pytest.fixture(autouse=True)
def stubbed(monkeypatch):
    monkeypatch.setattr("kernelcount.api.count", stubs.count)
    monkeypatch.setattr("kernelcount.api.compare", stubs.compare)

def two(*_): return ["add", "relu"]
def fused(*_): return {{"eager": ["add", "relu"], "compile": ["triton_poi_fused_add_relu_0"]}}
def unknown(*_): return "the profiler lost a record"
def bound(*_): return 2
"""


@pytest.fixture(autouse=True)
def only_this_plugin(monkeypatch):
    """In processes inside of this one, whether or not the package is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent))


@pytest.fixture
def run(pytester):
    """Run a test file with the plugin, counting by stubs."""
    pytester.makeconftest(CONFTEST)

    def ran(text, *options, how="runpytest_inprocess"):
        head = "import pytest\nfrom conftest import *\n"
        pytester.makepyfile(test_it=head + dedent(text))
        return getattr(pytester, how)(*PLUGIN, *options)

    return ran


def test_the_fixture_counts_and_a_right_assertion_passes(run):
    run("""
        def test_count(kernelcount):
            assert kernelcount(two).kernels == 2
            assert kernelcount.count(two, 1).kernel_names == {"void add": 1, "void relu": 1}
            assert [c.kernels for c in kernelcount.compare(fused)] == [2, 1]
    """).assert_outcomes(passed=1)


def test_a_failed_assertion_shows_the_kernels_and_their_ops(run):
    got = run("""
        def test_count(kernelcount):
            assert kernelcount(two).kernels == 1
    """)
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines([
        "E       assert 2 == 1",
        "E         eager, NVIDIA H200 · torch 2.11.0:",
        "E           1  add",
        "E           1  relu",
    ])  # fmt: skip


def test_a_failed_assertion_about_names_shows_the_kernels_as_well(run):
    got = run("""
        def test_count(kernelcount):
            assert kernelcount(two).kernel_names == {"void add": 2}
    """)
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines([
        "E       *'void add': 1, 'void relu': 1} == {'void add': 2}",
        "E         eager, NVIDIA H200 · torch 2.11.0:",
        "E           1  add",
        "E           1  relu",
    ])  # fmt: skip


def test_an_unknown_count_fails_whatever_is_asserted(run):
    got = run("""
        @pytest.mark.parametrize("fn", [unknown, bound])
        @pytest.mark.parametrize("wanted", [0, 1, 2])
        def test_count(kernelcount, fn, wanted):
            assert kernelcount(fn).kernels == wanted
        def test_other(kernelcount):
            assert kernelcount(bound).kernels != 1
        def test_none(kernelcount):
            assert not kernelcount(unknown).kernels
    """)
    got.assert_outcomes(failed=8)
    got.stdout.fnmatch_lines(["*NotMeasuredError: eager: kernels not known: the profiler lost*"])


def test_a_budget_of_the_marker_is_held(run):
    got = run("""
        @pytest.mark.kernelcount(kernels=2)
        def test_kept(kernelcount):
            kernelcount(two)
        @pytest.mark.kernelcount(kernels={"max": 3}, launches={"min": 1, "max": 2})
        def test_kept_between(kernelcount):
            kernelcount(two)
        @pytest.mark.kernelcount(eager={"kernels": 2}, compile={"kernels": 1})
        def test_kept_by_variants(kernelcount):
            kernelcount.compare(fused)
        @pytest.mark.kernelcount(variant="compile", kernels=1)
        def test_kept_compiled(kernelcount):
            assert kernelcount(fused).name == "compile"
    """)
    got.assert_outcomes(passed=4)


def test_a_broken_budget_fails_with_the_limit_and_the_kernels(run):
    got = run("""
        @pytest.mark.kernelcount(kernels=1)
        def test_broken(kernelcount):
            kernelcount(two)
        @pytest.mark.kernelcount(compile={"kernels": {"min": 2}, "launches": 1})
        def test_of_compile(kernelcount):
            kernelcount.compare(fused)
    """)
    got.assert_outcomes(failed=2)
    got.stdout.fnmatch_lines([
        "*the budget is not kept*",
        "*broken     eager  kernels 2, allowed 1",
        "*",
        "*eager, NVIDIA H200 · torch 2.11.0:",
        "*  1  add",
        "*  1  relu",
        "*broken     compile  kernels 1, allowed at least 2",
    ])  # fmt: skip


def test_what_cannot_be_decided_is_never_a_pass(run):
    text = """
        @pytest.mark.kernelcount(kernels=2)
        def test_unmeasured(kernelcount):
            kernelcount(unknown)
        @pytest.mark.kernelcount(kernels=2)
        def test_bound(kernelcount):
            kernelcount(bound)
        @pytest.mark.kernelcount(transfers=3)
        def test_not_on_paper(kernelcount):
            kernelcount(two)
        @pytest.mark.kernelcount(kernels=1)
        def test_broken_by_a_bound(kernelcount):
            kernelcount(bound)
    """
    got = run(text)
    got.assert_outcomes(failed=4)
    got.stdout.fnmatch_lines([
        "*undecided  eager  kernels: the profiler lost a record",
        "*undecided  eager  kernels ≥ 2, allowed 2: may launch more kernels than counted: mm",
        "*undecided  eager  transfers: it was not counted on paper",
        "*broken     eager  kernels ≥ 2, allowed 1",
    ])  # fmt: skip
    run(text, "--kernelcount-allow-undecided").assert_outcomes(failed=1, skipped=3)


def test_a_marked_test_that_counts_nothing_fails(run):
    got = run("""
        @pytest.mark.kernelcount(kernels=1)
        def test_without_the_fixture():
            pass
        @pytest.mark.kernelcount(kernels=1)
        def test_without_a_call(kernelcount):
            pass
        @pytest.mark.kernelcount(eager={"kernels": 2}, compile={"kernels": 1})
        def test_with_one_of_two(kernelcount):
            kernelcount(two)
        import unittest
        class TestOld(unittest.TestCase):
            @pytest.mark.kernelcount(kernels=1)
            def test_of_a_class(self):
                pass
    """)
    got.assert_outcomes(failed=4)
    got.stdout.fnmatch_lines(["*no count of compile, which has a budget*"])


def test_a_failure_of_the_budget_stands_where_the_test_catches_it(run):
    got = run("""
        def caught(count):
            try:
                count(two)
            except BaseException:
                pass
        @pytest.mark.kernelcount(kernels=1)
        def test_that_passes(kernelcount):
            caught(kernelcount)
        @pytest.mark.kernelcount(kernels=1)
        def test_that_skips_itself(kernelcount):
            caught(kernelcount)
            pytest.skip("not here")
        @pytest.mark.kernelcount(kernels=2)
        def test_that_keeps_it(kernelcount):
            caught(kernelcount)
        @pytest.mark.kernelcount(kernels=2)
        def test_that_is_skipped(kernelcount):
            pytest.skip("not here")
    """)
    got.assert_outcomes(failed=2, passed=1, skipped=1)
    got.stdout.fnmatch_lines([
        "kernelcount: the budget is not kept",
        "broken     eager  kernels 2, allowed 1",
        "(the test caught this failure)",
    ])  # fmt: skip


def test_what_is_undecided_and_allowed_is_skipped_where_the_test_catches_that(run):
    text = """
        @pytest.mark.kernelcount(kernels=1)
        def test_it(kernelcount):
            try:
                kernelcount(unknown)
            except BaseException:
                pass
    """
    run(text).assert_outcomes(failed=1)
    run(text, "--kernelcount-allow-undecided").assert_outcomes(skipped=1)


def test_markers_of_module_and_test_add_up_and_the_call_has_the_last_word(run):
    got = run("""
        pytestmark = pytest.mark.kernelcount(device="paper", gpu="A100")
        @pytest.mark.kernelcount(kernels=2, gpu="L4")
        def test_both(kernelcount):
            got = kernelcount(two)
            assert (got.environment.kind, got.environment.triton) == ("paper", "L4")
            assert kernelcount(two, gpu="T4").environment.triton == "T4"
        def test_options_alone(kernelcount):
            assert kernelcount(two).basis == "paper"
    """)
    got.assert_outcomes(passed=2)


def test_the_command_line_says_where_to_count_what_says_nothing_itself(run):
    text = """
        def test_it(kernelcount):
            assert kernelcount(two).environment.kind == "paper"
            assert kernelcount(two, device="cpu").environment.kind == "cpu"
    """
    run(text, "--kernelcount-device", "paper").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("kernel=1", "there is no limit kernel; did you mean kernels?"),
        ("kernels='two'", "kernels must be a number, such as 2; this is 'two'"),
        ("kernels=True", "kernels must be a number"),
        ("kernels=1.5", "kernels is a whole number"),
        ("kernels={'most': 1}", "there is no bound most"),
        ("kernels={}", "kernels has no limit"),
        ("call_time=3", "call_time varies from run to run"),
        ("kernels={'min': 3, 'max': 2}", "no kernels is at least 3 and at most 2"),
        ("compil={'kernels': 1}", "did you mean compile?"),
        ("compile={}", "compile has no limit"),
        ("", "it has no limit"),
        ("3", "takes keywords"),
        ("eager={'kernels': 1, 'speedup': {'max': float('nan')}}", "this is 'nan'"),
    ],
)
def test_a_wrong_marker_is_answered_with_what_to_write(run, marker, said):
    got = run(f"""
        @pytest.mark.kernelcount({marker})
        def test_it(kernelcount):
            kernelcount(two)
    """)
    got.assert_outcomes(errors=1)
    assert said in got.stdout.str()


def test_limits_are_written_as_in_yaml_with_units_too(run):
    run("""
        @pytest.mark.kernelcount(bytes="12 B", transfers={"max": 3}, kernels=2, device="paper")
        def test_it(kernelcount):
            kernelcount(two)
    """).assert_outcomes(passed=1)


LOCKED = """
    @pytest.mark.kernelcount(kernels={"max": 3})
    def test_it(kernelcount):
        kernelcount(two)
        kernelcount(fused)
    def test_without_a_budget(kernelcount):
        kernelcount(two)
"""


def test_what_was_launched_is_recorded_and_later_held_against_it(run, pytester):
    got = run(LOCKED, "--kernelcount-update")
    got.assert_outcomes(passed=2)
    got.stdout.fnmatch_lines(["kernelcount: wrote *kernelcount.lock, for 2 counts"])
    lock = pytester.path / "kernelcount.lock"
    before = lock.read_text()
    assert '- target: "test_it.py::test_it"\n' in before
    assert '  kernels:\n    "void add": 1\n    "void relu": 1\n' in before
    assert "without_a_budget" not in before
    run(LOCKED).assert_outcomes(passed=2)
    changed = LOCKED.replace("kernelcount(two)", "kernelcount(lambda: ['add', 'add', 'gelu'])", 1)
    got = run(changed)
    got.assert_outcomes(failed=1, passed=1)
    got.stdout.fnmatch_lines([
        "*broken     eager  lock: it launches other kernels than are recorded",
        "*  new: void gelu",
        "*  gone: void relu",
        "*  2 instead of 1: void add",
    ])  # fmt: skip
    assert lock.read_text() == before
    run(changed, "--kernelcount-update").assert_outcomes(passed=2)
    run(changed).assert_outcomes(passed=2)
    lock.write_text("- target: 3\n")
    run(LOCKED).assert_outcomes(failed=1, passed=1)


BUDGET = """
target: users.py:add_relu
size: 8
budget:
  eager: {limits}
"""


@pytest.fixture
def budgets(pytester, monkeypatch):
    """Run a file of budgets as a test, counting by stubs."""
    import stubs

    from kernelcount.model import Target
    from kernelcount.runners import Results

    def runner(job, *_, **__):
        outcomes = {i: stubs.outcome(v, ["add", "relu"], {}) for i, v in enumerate(job.variants)}
        return Results(job, outcomes, {0: Target(job.spec)}, outcomes[0].environment)

    monkeypatch.setattr("kernelcount.warm.in_fork", runner)
    pytester.makefile(".py", users="def add_relu(a, b): return (a + b).relu()")

    def ran(limits, *options):
        pytester.path.joinpath("b.yaml").write_text(BUDGET.replace("{limits}", limits))
        pytester.path.joinpath("other.yaml").write_text("jobs: {build: 1}")
        return pytester.runpytest_inprocess(*PLUGIN, "--kernelcount-budgets", *options)

    return ran


def test_budgets_in_yaml_are_tests_where_that_is_asked(budgets, pytester):
    budgets("{kernels: 2}").assert_outcomes(passed=1)
    got = budgets("{kernels: 1}")
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines(["broken     eager  kernels 2, allowed 1"])
    budgets("{transfers: 1}").assert_outcomes(failed=1)
    budgets("{transfers: 1}", "--kernelcount-allow-undecided").assert_outcomes(skipped=1)
    got = budgets("{kernel: 1}")
    got.assert_outcomes(errors=1)
    got.stdout.fnmatch_lines(["*b.yaml:5:11: there is no limit kernel; did you mean kernels?"])
    got = budgets("{kernels: 2}", "--kernelcount-update")
    got.stdout.fnmatch_lines(["kernelcount: wrote *kernelcount.lock, for 1 counts"])
    # Where kernelcount is installed pytest has the plugin already, and warns of -p.
    assert set(pytester.runpytest_inprocess(*PLUGIN).parseoutcomes()) <= {"warnings"}


def test_a_budget_whose_function_kills_its_process_is_not_skipped(budgets, monkeypatch):
    import stubs

    from kernelcount.model import Target, Unmeasured
    from kernelcount.runners import Results

    died = Unmeasured("eager", "the process died of SIGSEGV", None, 3, raised=True)
    environment = stubs.outcome("eager", [], {}).environment

    def runner(job, *_, **__):
        return Results(job, {0: died}, {0: Target(job.spec)}, environment)

    monkeypatch.setattr("kernelcount.warm.in_fork", runner)
    budgets("{kernels: 2}", "--kernelcount-allow-undecided").assert_outcomes(failed=1)


def test_the_marker_is_known_to_strict_pytest_and_shown(run):
    got = run("def test_it(): pass", "--markers", "--strict-markers")
    got.stdout.fnmatch_lines(["@pytest.mark.kernelcount(kernels=1, *"])
    run("def test_it(kernelcount): pass", "--fixtures").stdout.fnmatch_lines(["kernelcount*"])


def test_it_works_in_the_workers_of_xdist(run, pytester):
    text = """
        @pytest.mark.kernelcount(kernels=2)
        @pytest.mark.parametrize("fn", [two, unknown, two])
        def test_it(kernelcount, fn):
            kernelcount(fn)
    """
    pytest.importorskip("xdist")
    options = ("-p", "xdist", "-n", "2", "--kernelcount-update")
    got = run(text, *options, how="runpytest_subprocess")
    got.assert_outcomes(passed=2, failed=1)
    got.stdout.fnmatch_lines(["kernelcount: wrote *kernelcount.lock, for 2 counts"])
    assert (pytester.path / "kernelcount.lock").read_text().count("- target:") == 2


def test_the_plugin_itself_imports_nothing_but_pytest_and_the_standard_library():
    program = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import kernelcount.pytest_plugin\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(*sorted(new - set(sys.stdlib_module_names)))\n"
        "print(*sorted(m for m in sys.modules if m.startswith('kernelcount.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["kernelcount", "kernelcount.pytest_plugin"]


def test_an_unused_plugin_loads_no_torch(run):
    program = "import sys\ndef test_it(): assert not {'torch', 'rich'} & set(sys.modules)"
    got = run(program, how="runpytest_subprocess")
    got.assert_outcomes(failed=0, passed=1)
