"""What a worker tells: the order of its messages, and how it words what the user's code does."""

import os
import select
import sys
import warnings

import msgspec
import pytest

from kernelcount import worker
from kernelcount.errors import KernelcountError
from kernelcount.model import Job, Unmeasured
from kernelcount.traces import saved
from kernelcount.worker import process


@pytest.fixture
def performed(monkeypatch):
    """Do a job in this process; its messages."""
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])

    def done(spec, *variants, first=0, **options):
        messages = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worker.perform(
                Job(spec, variants=variants or ("eager",), **{"device": "cpu", **options}),
                first,
                messages.append,
            )
        return messages

    return done


def of_kind(kind, messages):
    return [m for m in messages if isinstance(m, kind)]


def failure(performed, target, body, **options):
    """How a function's end is told: the outcome and what is said of it."""
    messages = performed(target(f"def f(x):\n    {body}") + ":f", **{"sizes": (4,), **options})
    (done,) = of_kind(worker.Done, messages)
    (outcome,) = saved.load(bytes(done.outcome), "")
    assert isinstance(outcome, Unmeasured)
    return outcome, done


def test_the_users_code_is_imported_between_two_messages_and_a_variant_begins_before_its_inputs(
    performed, target
):
    messages = performed(target("def f(x): return x + 1") + ":f", "eager", sizes=(4, 8))
    kinds = [type(m).__name__ for m in messages if not isinstance(m, worker.Progress)]
    each = ["Begin", "Ready", "Done"]
    assert kinds == ["Loading", "Loaded", *each, *each]
    assert [m.target.inputs for m in of_kind(worker.Ready, messages)] == [("f32[4]",), ("f32[8]",)]


def test_messages_survive_the_pipe(performed, target):
    decoder = msgspec.json.Decoder(worker.Message)
    for message in performed(target("def f(x): return x + 1") + ":f", sizes=(4,)):
        assert type(decoder.decode(msgspec.json.encode(message))) is type(message)


def test_a_job_goes_on_from_any_step(performed, target):
    messages = performed(target("def f(x): return x + 1") + ":f", sizes=(4, 8), first=1)
    assert [m.index for m in of_kind(worker.Done, messages)] == [1]


def test_after_a_failure_the_rest_is_left_to_another_process(performed, target):
    spec = target("def f(x):\n    raise ValueError('bad')") + ":f"
    messages = performed(spec, "eager", "compile:backend=eager", sizes=(4,))
    assert [m.index for m in of_kind(worker.Done, messages)] == [0]


# ── how an end is worded ─────────────────────────────────────────────────────────────────────────


def test_the_users_exception_is_shown_with_the_users_frames_alone(performed, target):
    path = target("""
        def deeper(x):
            raise ValueError("bad batch 3\\nsecond line")
        def f(x):
            return deeper(x)
    """)
    (done,) = of_kind(worker.Done, performed(f"{path}:f", sizes=(4,)))
    (outcome,) = saved.load(bytes(done.outcome), "")
    assert (outcome.reason, outcome.code) == ("raised ValueError: bad batch 3", 2)
    without_carets = [line for line in done.said.splitlines() if line.strip(" ^~")]
    assert without_carets == [
        "raised ValueError: bad batch 3",
        "Traceback (most recent call last):",
        f'  File "{path}", line 6, in f',
        "    return deeper(x)",
        f'  File "{path}", line 4, in deeper',
        '    raise ValueError("bad batch 3\\nsecond line")',
        "ValueError: bad batch 3",
        "second line",
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise SystemExit(0)", "the function called sys.exit(0)"),
        ("raise SystemExit", "the function called sys.exit()"),
        ("raise SystemExit('a\\nb')", "the function called sys.exit('a\\nb')"),
        ("raise type('Odd', (BaseException,), {})('odd')", "raised Odd: odd"),
        ("raise GeneratorExit", "raised GeneratorExit"),
        ("raise ValueError", "raised ValueError"),
        ("raise ValueError('\\n\\n  late  \\n')", "raised ValueError: late"),
        ("return x @ torch.ones(3, 3)", "raised RuntimeError: mat1 and mat2 shapes"),
        ("raise ValueError('bad \\ud800 text')", "raised ValueError: bad \\ud800 text"),
        (
            "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})",
            "raised E: (its __str__ fails)",
        ),
    ],
)
def test_an_end_is_one_line_whatever_is_raised(performed, target, body, reason):
    outcome, done = failure(performed, target, body)
    assert outcome.reason.startswith(reason)
    assert outcome.code == 2
    assert done.said.startswith(outcome.reason)


@pytest.mark.parametrize(
    "text", ["'Z' * 3_000_000", "'line\\n' * 100_000", "'\\x00\\x1b[31m' * 90_000"]
)
def test_an_endless_text_is_cut(performed, target, text):
    outcome, done = failure(performed, target, f"raise ValueError({text})")
    assert len(outcome.reason) < 400
    assert len(done.said) < 10_000
    assert len(done.said.splitlines()) < 100
    assert "left out" in done.said


def test_an_exception_costs_a_variant_other_than_eager_exit_code_3(performed, target):
    spec = target("""
        def f(x): return x
        def g(x): raise ValueError("bad")
    """)
    (done,) = of_kind(worker.Done, performed(f"{spec}:f", f"{spec}:g", sizes=(4,)))
    (outcome,) = saved.load(bytes(done.outcome), "")
    assert outcome.code == 3


@pytest.mark.parametrize(
    "body",
    [
        "return x.cuda()",
        "return torch.ones(3, device='cuda')",
        "raise RuntimeError('Found no NVIDIA driver on your system. Please check')",
    ],
)
def test_what_needs_cuda_says_so_in_one_line(performed, target, body):
    outcome, done = failure(performed, target, body)
    assert outcome.reason.startswith("this needs CUDA, and there is none here")
    assert outcome.code == 3
    assert "Traceback" not in done.said


def test_so_does_a_module_that_needs_it_while_it_is_imported(performed, target):
    path = target("x = torch.ones(3, device='cuda')\ndef f(x): return x")
    (failed,) = of_kind(worker.Failed, performed(f"{path}:f"))
    assert failed.code == 3
    assert failed.message.startswith(f"importing {path}:f: this needs CUDA")


def test_out_of_memory_is_one_line_with_a_smaller_size(performed, target):
    outcome, done = failure(performed, target, "return x[:, None] - x", sizes=(10_000_000,))
    assert outcome.reason == "out of memory: it asked for 400 TB; try a smaller --size, such as 1e4"
    assert done.said == outcome.reason
    assert done.rest == "not tried: eager asks for far more memory than there is"


def test_inputs_that_do_not_fit_into_memory_end_the_job(performed, target):
    spec = target("def f(x): return x") + ":f"
    (failed,) = of_kind(worker.Failed, performed(spec, sizes=(10**12,)))
    assert failed.code == 3
    assert failed.message.startswith("making the inputs: out of memory: it asked for 4 TB; try a")


def test_but_of_several_sizes_only_that_one(performed, target):
    spec = target("def f(x): return x") + ":f"
    messages = performed(spec, sizes=(8, 10**12))
    assert not of_kind(worker.Failed, messages)
    first, second = of_kind(worker.Done, messages)
    assert first.said == ""
    assert second.rest.startswith("making the inputs: out of memory")


@pytest.mark.parametrize(
    ("maker", "code", "said"),
    [
        (
            "raise ValueError('no data')",
            2,
            "making the inputs: raised ValueError: no data\nTraceback",
        ),
        ("return torch.ones(3, device='cuda')", 3, "making the inputs: this needs CUDA"),
        ("raise SystemExit(0)", 2, "make_inputs() called sys.exit(0)"),
        ("return 1, 2, 3", 2, "make_inputs() gives (x0, x1, x2) but f(x) takes 1 positional"),
    ],
)
def test_a_maker_that_fails_ends_the_job(performed, target, maker, code, said):
    path = target(f"def make_inputs():\n    {maker}\ndef f(x): return x")
    (failed,) = of_kind(worker.Failed, performed(f"{path}:f"))
    assert failed.code == code
    assert said in failed.message


def test_keyboard_interrupt_passes_through(performed, target):
    with pytest.raises(KeyboardInterrupt):
        performed(target("def f(x): raise KeyboardInterrupt") + ":f", sizes=(4,))


# ── options ──────────────────────────────────────────────────────────────────────────────────────


def notes(messages):
    (done,) = of_kind(worker.Done, messages)
    (outcome,) = saved.load(bytes(done.outcome), "")
    return {note.code for note in outcome.notes}


def test_eval_needs_a_module(performed, target):
    (failed,) = of_kind(
        worker.Failed, performed(target("def f(x): return x") + ":f", evaluate=True)
    )
    assert (failed.code, failed.message.partition(":")[0]) == (2, "--eval")


def test_under_no_grad_there_is_no_graph(performed, target):
    path = target("""
        w = torch.ones(4, requires_grad=True)
        def f(x):
            y = x * w
            assert not y.requires_grad
            return y
    """)
    assert notes(performed(f"{path}:f", sizes=(4,), no_grad=True)) == set()


def test_the_inputs_are_the_same_for_the_same_seed_and_others_for_another(performed, target):
    path = target("""
        seen = []
        def f(x): seen.append(x.clone())
    """)
    for seed in (1, 1, 2):
        performed(f"{path}:f", sizes=(4,), seed=seed)
    seen = next(m.seen for m in sys.modules.values() if getattr(m, "__file__", "") == path)
    per_run = len(seen) // 3
    assert seen[0].equal(seen[per_run])
    assert not seen[0].equal(seen[-1])


@pytest.mark.parametrize("maker", ["mine", "makers.py:mine", "makers:mine"])
def test_a_maker_is_named_in_the_targets_file_or_another(performed, target, maker):
    text = "def mine(n=5, dtype=None): return (torch.ones(n),)"
    target(text, "makers.py")
    path = target(text + "\ndef f(x): return x + 1")
    (ready,) = of_kind(worker.Ready, performed(f"{path}:f", maker=maker, sizes=(7,)))
    assert ready.target.inputs == ("f32[7]",)


def test_a_module_that_changes_the_folder_still_finds_the_other_files(
    performed, target, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    target("def g(x): return x", "elsewhere.py")
    target("import os\nos.chdir('/')\ndef f(x): return x", "users.py")
    messages = performed("users.py:f", "elsewhere.py:g", sizes=(4,))
    assert [m.said for m in of_kind(worker.Done, messages)] == [""]


def test_a_trace_that_cannot_be_written_costs_nothing_but_itself(performed, target):
    spec = target("def f(x): return x + 1") + ":f"
    messages = performed(spec, sizes=(4,), traces=("/dev/full",))
    (unwritten,) = of_kind(worker.Unwritten, messages)
    assert unwritten.text == "--trace /dev/full: No space left on device"
    assert of_kind(worker.Done, messages)[0].said == ""


# ── the way to the parent ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "results"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reading
    os.close(reading)


def test_each_message_is_a_line(pipe):
    path, reading = pipe
    send = process.Sender(path)
    send(worker.Begin(3))
    send(worker.Progress("two\nlines"))
    lines = os.read(reading, 1000).splitlines()
    assert [msgspec.json.decode(line, type=worker.Message) for line in lines] == [
        worker.Begin(3),
        worker.Progress("two\nlines"),
    ]


def test_a_forked_child_has_nothing_to_say_and_ends(pipe):
    path, reading = pipe
    send = process.Sender(path)
    send._process = os.getpid() + 1  # as it looks from a child
    ended = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "_exit", lambda code: ended.append(code) or sys.exit())
        with pytest.raises(SystemExit):
            send(worker.Begin(1))
    assert ended == [0]
    assert not select.select([reading], [], [], 0)[0]


def test_a_module_that_asks_the_compiler_too_late_is_told_so(count, target, monkeypatch):
    import torch

    torch.compiler.reset()  # which imports the compiler
    import torch._inductor.config

    monkeypatch.setenv("TORCHINDUCTOR_OF_A_TEST", "0")  # to be put back
    path = target("import os\nos.environ['TORCHINDUCTOR_OF_A_TEST'] = '1'\ndef f(x): return x + 1")
    outcome = count(f"{path}:f", sizes=(4,))["eager"]
    (late,) = [n.detail for n in outcome.notes if n.code == "late-environment"]
    assert late == (
        "the module sets TORCHINDUCTOR_OF_A_TEST, which torch's compiler had read before: "
        "not heeded"
    )


IDLE = """
import torch
def get_inputs(): return [torch.randn(32, 64)]
def f(x): return x.relu() + 1
def nothing(): return torch.ones(3)
"""


@pytest.mark.parametrize(
    ("name", "given", "what"),
    [
        ("f", {}, "get_inputs() takes no n and no size"),
        ("f", {"inputs": ("f32[64]",)}, "no --input has an N"),
        ("nothing", {}, "the function takes no arguments"),
    ],
)
def test_a_size_that_has_no_effect_is_told_of_and_several_are_refused(
    count, target, name, given, what
):
    spec = f"{target(IDLE)}:{name}"
    outcome = count(spec, sizes=(4,), device="paper", **given)["eager"]
    assert [n.detail for n in outcome.notes if n.code == "idle-size"] == [
        f"nothing depends on --size, as {what}"
    ]
    with pytest.raises(KernelcountError, match="all would be the same"):
        count(spec, sizes=(4, 8), device="paper", **given)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("OSError('CUDA_HOME environment variable is not set. Please set it.')", "no nvcc was"),
        ("RuntimeError('Ninja is required to load C++ extensions (pip install)')", "ninja, which"),
    ],
)
def test_a_missing_compiler_of_cuda_c_is_said_without_frames(performed, target, error, said):
    outcome, done = failure(performed, target, f"raise {error}")
    assert outcome.reason.startswith(said)
    assert (outcome.code, outcome.raised, done.said) == (3, False, outcome.reason)
