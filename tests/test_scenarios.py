"""Where the scenarios are found, and what is known of each without importing it."""

import csv
import json
from pathlib import Path

import pytest

from kernelcount import scenarios, target
from kernelcount.errors import NotMeasuredError, UsageError
from kernelcount.model import Checked
from kernelcount.render import scenarios as render


def test_a_source_tree_has_them_beside_the_package():
    assert scenarios.folder().name == "scenarios"
    assert (scenarios.folder() / "add_relu.yaml").is_file()


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A package as a wheel installs it."""
    package = tmp_path / "kernelcount"
    (package / "_scenarios").mkdir(parents=True)
    monkeypatch.setattr(scenarios, "__file__", str(package / "scenarios.py"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return package / "_scenarios"


def test_the_folder_is_told_from_the_current_one_on(wheel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(scenarios.folder()) == "kernelcount/_scenarios"


def test_a_wheel_has_them_within_the_package(wheel):
    (wheel / "add.py").write_text('"""One kernel.\n\nAnd why."""')
    (wheel / "add.yaml").write_text("target: add.py:add")
    (found,) = scenarios.find()
    assert scenarios.folder() == wheel
    assert (found.name, found.theme, found.claim, found.teaches) == (
        "add", "Count kernels", "One kernel.", "And why."
    )  # fmt: skip
    assert (found.function, found.budget) == (str(wheel / "add.py"), str(wheel / "add.yaml"))


@pytest.mark.parametrize(
    ("text", "claim", "teaches"),
    [
        (
            "One sentence on\n    two lines.\n\n    And why.",
            "One sentence on two lines.",
            "And why.",
        ),
        ("One sentence\n    on two lines.\n    So.", "One sentence on two lines.", "So."),
        ("No full stop\n\nAnd why.", "No full stop", "And why."),
        ("Two. Sentences.\nAnd why.", "Two. Sentences.", "And why."),
    ],
)
def test_the_claim_is_the_first_sentence_or_line(wheel, text, claim, teaches):
    (wheel / "add.py").write_text(f'"""{text}"""')
    (wheel / "add.yaml").write_text("")
    (found,) = scenarios.find()
    assert (found.claim, found.teaches) == (claim, teaches)


def test_a_function_without_a_budget_is_no_scenario(wheel):
    (wheel / "helper.py").write_text("")
    (wheel / "lost.yaml").write_text("")
    assert scenarios.find() == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'"""Broken."""\ndef f(a:\n', "broken.py:2 cannot be read: '(' was never closed"),
        (b'"""Broken \xff."""\n', "cannot be read: (unicode error)"),
        (b"x = 1\0\n", " cannot be read: "),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_hides_no_other(wheel, kernelcount, content, said):
    (wheel / "add.py").write_text('"""One kernel."""')
    (wheel / "broken.py").write_bytes(content)
    for name in ("add", "broken"):
        (wheel / f"{name}.yaml").write_text(
            f"target: {name}.py:f\nbudget: {{eager: {{kernels: 1}}}}"
        )
    code, out, err = kernelcount("scenarios", "--format", "json")
    good, bad = json.loads(out)["scenarios"]
    assert (code, err, good["claim"], good["problem"]) == (0, "", "One kernel.", "")
    assert said in bad["problem"]
    assert bad["problem"].startswith(f"{wheel}/broken.py")
    assert "  add     One kernel.\n" in kernelcount("scenarios")[1]


def test_one_that_no_theme_names_comes_last(wheel):
    for name in ("new", "add"):
        (wheel / f"{name}.py").write_text("x = 1")
        (wheel / f"{name}.yaml").write_text("")
    assert [(s.theme, s.name, s.claim) for s in scenarios.find()] == [
        ("Count kernels", "add", "add"), ("More", "new", "new"),
    ]  # fmt: skip


def test_the_users_own_stand_in_the_current_folder_and_come_last(wheel, tmp_path, monkeypatch):
    own = tmp_path / "work" / "scenarios"
    own.mkdir(parents=True)
    for place, name in ((wheel, "add"), (wheel, "softmax"), (own, "scale"), (own, "softmax")):
        (place / f"{name}.py").write_text(f'"""From {place.name}."""')
        (place / f"{name}.yaml").write_text("")
    monkeypatch.chdir(own.parent)
    assert [(s.theme, s.name, s.claim) for s in scenarios.find()] == [
        ("Count kernels", "add", "From _scenarios."),
        ("Your own", "scale", "From scenarios."),
        ("Your own", "softmax", "From scenarios."),
    ]
    assert scenarios.choose(["scale"])[0].function == "scenarios/scale.py"


def test_one_of_the_users_that_has_the_name_of_another_says_so(wheel, tmp_path, monkeypatch):
    own = tmp_path / "work" / "scenarios"
    own.mkdir(parents=True)
    for place, name in ((wheel, "add"), (own, "add"), (own, "scale")):
        (place / f"{name}.py").write_text(f'"""From {place.name}."""')
        (place / f"{name}.yaml").write_text("")
    monkeypatch.chdir(own.parent)
    found = scenarios.find()
    assert [s.replaces for s in found] == [str(wheel / "add.py"), ""]
    listed = "".join(render.render(found, wheel, form="table").split())
    assert "addFromscenarios.(intheplaceof" in listed
    held = render.part(found[0], Checked(()), full=False)
    assert "(in the place of" in held


def test_a_package_without_them_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "__file__", str(tmp_path / "kernelcount" / "scenarios.py"))
    with pytest.raises(NotMeasuredError, match="the scenarios are missing"):
        scenarios.folder()


def test_they_are_chosen_by_name():
    chosen = scenarios.choose(["softmax", "add", "softmax"])
    assert [scenario.name for scenario in chosen] == ["softmax", "add"]


def test_a_wrong_name_is_told_with_the_nearest():
    with pytest.raises(UsageError, match="there is no scenario sofmax: did you mean softmax"):
        scenarios.choose(["sofmax"])


def test_every_wrong_name_is_told():
    with pytest.raises(UsageError) as refused:
        scenarios.choose(["add", "nosuch", "pinned_coppy"])
    assert str(refused.value).splitlines() == [
        "there is no scenario nosuch",
        "there is no scenario pinned_coppy: did you mean pinned_copy?",
        "kernelcount scenarios lists them",
    ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("x.yaml",), "x is no scenario yet: scenarios/x.yaml has no function x.py beside it"),
        (("x.py",), "x is no scenario yet: scenarios/x.py has no budget x.yaml beside it"),
        (("x.py", "x.yml"), "x is no scenario yet: scenarios/x.yml must be named x.yaml"),
    ],
)
def test_half_a_scenario_is_told_what_it_lacks(wheel, files, said):
    Path("scenarios").mkdir()
    for name in files:
        Path("scenarios", name).write_text("")
    with pytest.raises(UsageError, match=f"^{said}\n"):
        scenarios.choose(["x"])


def test_a_yaml_file_of_another_program_is_passed_over(wheel, kernelcount):
    Path("scenarios").mkdir()
    for name, text in (
        ("scale", "target: scale.py:f\nbudget: {eager: {kernels: 1}}\n"),
        ("conf", "services:\n  web: {image: nginx}\n"),
        ("tags", "where: !Ref x\n"),
        ("add", "steps: [build]\n"),
        ("empty", "# nothing yet\n"),
        ("torn", "budget: {eager: {kernels: 1}\n"),
    ):
        Path("scenarios", f"{name}.py").write_text(f'"""{name}."""\n')
        Path("scenarios", f"{name}.yaml").write_text(text)
    Path("scenarios", "shut.py").write_text('"""shut."""\n')
    Path("scenarios", "shut.yaml").symlink_to("nowhere")
    (wheel / "add.py").write_text('"""One kernel."""')
    (wheel / "add.yaml").write_text("target: add.py:f\nbudget: {eager: {kernels: 1}}\n")
    code, out, _ = kernelcount("scenarios", "list", "--format", "json")
    listed = json.loads(out)["scenarios"]
    assert (code, [s["name"] for s in listed]) == (0, ["add", "empty", "scale", "shut", "torn"])
    assert [s["replaces"] for s in listed] == [""] * 5
    code, _, err = kernelcount("scenarios", "run", "conf")
    assert code == 2
    said = "conf is no scenario yet: scenarios/conf.yaml has neither target: nor budget:"
    assert said in " ".join(err.split())


def test_a_target_that_is_among_them_is_told_where(wheel):
    (wheel / "add_relu.py").write_text("")
    with pytest.raises(UsageError) as refused:
        target.check("scenarios/add_relu.py:add_relu")
    assert str(refused.value) == (
        "there is no file scenarios/add_relu.py here: the one that comes with kernelcount is"
        f" {wheel / 'add_relu.py'}"
    )


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_the_command_lists_them_by_theme(kernelcount):
    code, out, err = kernelcount("scenarios")
    assert (code, err) == (0, "")
    assert out.startswith("Count kernels\n  add  ")
    assert [t for t in scenarios.THEMES if f"{t}\n" in out] == list(scenarios.THEMES)
    assert all(f"\n  {scenario.name} " in out for scenario in scenarios.find())
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_program_gets_them_as_a_document(kernelcount):
    code, out, _ = kernelcount("scenarios", "list", "add_relu", "--format", "json")
    document = json.loads(out)
    (scenario,) = document["scenarios"]
    assert (code, document["command"], scenario["name"]) == (0, "scenarios", "add_relu")
    assert scenario["claim"].startswith("Two operations are two kernels")


def test_the_list_ends_with_the_folder(kernelcount):
    last = kernelcount("scenarios")[1].splitlines()[-1]
    assert last == f"Those that come with kernelcount are in {scenarios.folder()}"


def test_the_list_is_written_as_markdown_and_csv(kernelcount):
    code, text, _ = kernelcount("scenarios", "list", "add", "bandwidth", "--format", "markdown")
    assert code == 0
    assert text.startswith(
        "### Count kernels\n\n| scenario | claim |\n| --- | --- |\n| add | One line, one launch"
    )
    assert "\n\n### Memory\n\n| scenario" in text
    code, text, _ = kernelcount("scenarios", "list", "add", "bandwidth", "--format", "csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert code == 0
    assert [(r["theme"], r["name"]) for r in rows] == [
        ("Count kernels", "add"), ("Memory", "bandwidth"),
    ]  # fmt: skip
    assert rows[0]["function"] == str(scenarios.folder() / "add.py")


def test_an_action_that_there_is_not_is_refused(kernelcount):
    code, _, err = kernelcount("scenarios", "walk")
    assert code == 2
    assert "scenarios walk" in err
