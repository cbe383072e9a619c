"""What compiled code moves, by hand: what a kernel must load and what it must store."""

from pathlib import Path

import pytest

from kernelcount import runners
from kernelcount.model import Job

FUNCTIONS = Path(__file__).parent / "written.py"

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("by_rules_alone")]


def moved(name, size):
    """(bytes read, bytes written) of each kernel of the compiled function."""
    job = Job(
        f"{FUNCTIONS}:{name}",
        variants=("compile",),
        device="paper",
        maker=f"make_{name}",
        sizes=(size,),
    )
    (compiled,) = runners.in_process(job, lambda _: None).outcomes.values()
    return [(row.read, row.written) for row in compiled.rows()]


KEY, CACHE, SUMS = 2 * 4 * 16 * 4, 2 * 4 * 100 * 16 * 4, 2 * 4 * 100 * 4


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("keeps_a_key", [(KEY, KEY), (KEY + CACHE, SUMS)]),
        ("writes_columns", [(4000, 4000), (40_000, 40_000)]),
        ("adds_to_a_slice", [(80, 40), (400, 4)]),
        ("returns_what_it_changes", [(800, 800)]),
    ],
)
def test_after_a_part_was_written_the_whole_is_read_as_the_whole(name, kernels):
    assert moved(name, 100) == kernels


INDICES, ROWS = 8 * 8, 8 * 4 * 4


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("copies_into_a_view", [(40, 40)]),
        ("puts", [(INDICES + ROWS, ROWS)]),
        ("puts_a_number", [(INDICES, ROWS)]),
        ("copies_rows", [(INDICES + ROWS, ROWS)]),
        ("adds_rows", [(INDICES + 2 * ROWS, ROWS)]),
        ("scatters", [(1600, 1600), (8 * 4 * 8 + ROWS, ROWS)]),
    ],
)
def test_what_is_put_into_an_array_is_stored_and_the_array_is_not_loaded(name, kernels):
    assert moved(name, 100) == kernels


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("differs", [(400, 396)]),
        ("squares", [(400, 400)]),
        ("joins_a_part", [(440, 440)]),
        ("averages_windows", [(400, 388)]),
        ("rotates", [(100 * (128 + 64 + 64) * 4, 100 * 128 * 4)]),
    ],
)
def test_an_element_that_is_loaded_by_several_indices_is_read_once(name, kernels):
    assert moved(name, 100) == kernels


@pytest.mark.parametrize(("name", "rows"), [("looks_up_twice", 1), ("looks_up_by_two", 2)])
def test_rows_looked_up_by_the_same_indices_are_read_once_and_by_others_again(name, rows):
    assert moved(name, 100) == [(INDICES + rows * ROWS, ROWS)]


MATRICES = 2 * 16 * 16 * 8


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("multiplies_matrices", [(2 * MATRICES, MATRICES)]),
        ("multiplies_by_its_conjugate", [(MATRICES, MATRICES), (2 * MATRICES, MATRICES)]),
    ],
)
def test_a_view_of_complex_numbers_moves_nothing(name, kernels):
    assert moved(name, 16) == kernels


def test_a_library_call_reads_the_whole_array_of_which_a_part_was_written():
    assert moved("multiplies_after_writing", 100)[0] == (4000, 4000)
    assert min(moved("multiplies_after_writing", 100)[1]) >= 40_000
