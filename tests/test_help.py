"""The help as a newcomer meets it: short, then complete; short options; suggestions; the command as a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import gdi
from gdi.cli.help import field_docs
from gdi.cli.main import CLOSED_PIPE, main
from gdi.cli.parsing import nearest_options, whole_number
from gdi.cli.refusals import find_environment
from gdi.cli.settings import KINDS, SHORT, SYNONYMS, option_name, setting_options
from gdi.cli.train import parse
from gdi.config import SECTIONS, Config, kinds
from gdi.config.json import KIND_SECTIONS
from gdi.errors import Diverged, DivergenceError, did_you_mean
from gdi.placement import PlacementConfig
from gdi.presets import PRESETS, make_config
from helpers import error_line

CARTPOLE = ["train", "--env", "CartPole-v1"]
# The options that a newcomer needs.
NEEDED = {
    "--env": "ENV",
    "--steps": "N",
    "--seed": "N",
    "--lr": "RATE",
    "--num-envs": "N",
    "--device": "DEVICE",
    "--threads": "N",
    "--scale": "SCALE",
    "--run-dir": "DIR",
    "--resume": "",
}


def shown(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def options_in(text: str) -> set[str]:
    """The options that a help text explains: those at the start of a line, and their other names."""
    lines = [line.strip().partition("  ")[0] for line in text.splitlines() if re.match(r" {2}-", line)]
    return {word for line in lines for word in re.findall(r"(?<!\S)--[a-z][\w.-]*", line)}


def types_of(section: str) -> list[type[Any]]:
    hint = get_type_hints(Config)[section]
    return list(get_args(hint) or (hint,))


# ------------------------------------------------------------------------------------------------------ short help


@pytest.mark.parametrize("command", ["train", "bench"])
@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize("words", [["--help"], ["-h"], ["gdi-h3", "--env", "pong", "--help"]])
def test_the_short_help_fits_on_a_screen(
    command: str, columns: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown([command, *words], capsys)
    assert len(text.splitlines()) <= 40
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "--help-all" in text
    assert not [option for option in options_in(text) if "." in option]


def test_the_short_help_has_what_a_newcomer_needs(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(["train", "--help"], capsys)
    for option, value in NEEDED.items():
        assert f"  {option} {value}".rstrip() in text
    assert options_in(text) == {*NEEDED, "--total-timesteps", "--help", "--help-all"}
    assert all(preset in text for preset in PRESETS)


def test_the_short_help_shows_the_defaults_of_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    for env in ("CartPole-v1", "MinAtar/Breakout-v0"):
        config = make_config("gdi-i3", env)
        text = " ".join(shown(["train", "--env", env, "--help"], capsys).split())
        assert f"(default: {config.steps})" in text
        assert f"stepped together (default: {config.env.num_envs})" in text
        assert f"learning rate of the optimizer (default: {config.optimizer.learning_rate:g})" in text
        assert f"at scale {config.scale}." in text


# ------------------------------------------------------------------------------------------------------- long help


def test_the_long_help_has_every_setting_of_the_presets_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    for preset in PRESETS:
        config = make_config(preset)
        text = shown(["train", preset, "--help-all"], capsys)
        explained = options_in(text)
        assert set(NEEDED) <= explained
        assert {"--json", "--trust", "--runtime", "--ray-address", "--placement.actors"} <= explained
        for section in SECTIONS:
            value = getattr(config, section)
            assert f"\n{section.replace('_', '-')}: " in text
            own = {option_name(section, f.name) for f in fields(value) if not is_dataclass(getattr(value, f.name))}
            other = {option_name(section, f.name) for kind in types_of(section) for f in fields(kind)} - own
            assert own - {"--env.id", "--env.given"} <= explained
            assert "--env.given" not in explained
            assert not (other & explained), f"{preset} has no {other & explained}"
        for section, known in KINDS.items():
            assert f"  {option_name(section)} {{{','.join(known)}}}" in text


def test_the_long_help_follows_the_kind_that_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--controller.num-bandits" in options_in(shown(["train", "--help-all"], capsys))
    for words in (["fixed"], ["--controller", "fixed"], ["--controller=fixed"]):
        explained = options_in(shown(["train", *words, "--help-all"], capsys))
        assert not [option for option in explained if option.startswith("--controller.")]
    explained = options_in(shown(["bench", "--controller", "multiplicative-weights", "--help-all"], capsys))
    assert "--controller.step-size" in explained
    assert "--seconds" in explained
    assert not [option for option in explained if option.startswith("--placement.")], "bench does not use Ray"


def test_the_long_help_says_plain_words_then_the_papers_row_then_the_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = " ".join(shown(["train", "--help-all"], capsys).split())
    assert (
        "--learner.discount X discount of future rewards (γ). "
        f'Table H "Discount". (default: {make_config().learner.discount:g})'
    ) in text
    assert "--run.overlap, --run.no-overlap act and learn at the same time" in text
    assert "--controller.tile-widths N ... tile widths in blocks (ta)" in text


@pytest.mark.parametrize("preset", PRESETS)
def test_the_papers_rows_are_in_the_help_of_its_own_agents_only(
    preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(["train", preset, "--help-all"], capsys)
    assert ("Table H" in text) == (preset not in ("dqn", "ppo", "impala"))
    assert "number of environments that are stepped together" in text


CLASSES = [*(cls for name in SECTIONS for cls in types_of(name)), PlacementConfig]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_setting_is_explained_in_plain_words(cls: type[Any]) -> None:
    documented = field_docs(cls)
    for f in fields(cls):
        if is_dataclass(f.default):
            continue
        text = documented.get(f.name, "")
        assert re.match(r"[A-Z][A-Za-z0-9-]+ ", text), f"{f.name} starts with a symbol: {text!r}"
        assert not text.startswith("Table H"), f"{f.name} has only the paper's row"
        assert "``" not in text, f"{f.name} has raw markup"
        for sentence in re.split(r"(?<=[.;:])\s", text.partition("Table H")[0]):
            assert len(sentence.split()) <= 25, f"{f.name}: {sentence!r} is too long"


def test_a_class_without_source_has_no_texts() -> None:
    namespace: dict[str, Any] = {"dataclass": dataclass}
    exec('@dataclass\nclass Typed:\n    level: int = 3\n    """Level."""\n', namespace)
    assert field_docs(namespace["Typed"]) == {}


def test_texts_of_fields_are_inherited() -> None:
    @dataclass
    class Base:
        one: int = 1
        """First
        text."""
        plain: int = 0

    @dataclass
    class Derived(Base):
        two: int = 2
        """Second text."""

    assert field_docs(Derived) == {"one": "First text.", "two": "Second text."}


# --------------------------------------------------------------------------------------------------- short options


def test_the_short_options_are_the_settings() -> None:
    words = ["--lr", "1e-3", "--num-envs", "8", "--device", "cpu", "--threads=1", "--total-timesteps", "5e3"]
    full = ["--optimizer.learning-rate=1e-3", "--env.num-envs=8", "--run.device=cpu", "--run.threads=1", "--steps=5000"]
    config = parse(["--env", "CartPole-v1", *words]).config
    assert config == parse(["--env", "CartPole-v1", *full]).config
    assert (config.optimizer.learning_rate, config.env.num_envs, config.run.device) == (1e-3, 8, "cpu")
    assert (config.run.threads, config.steps) == (1, 5000)
    assert len({short.option for short in SHORT}) == 4


def test_underscores_are_taken_for_dashes() -> None:
    words = ["--num_envs", "8", "--total_timesteps=5e3", "--run_dir", "a_b", "--optimizer.learning_rate", "1e-3"]
    choice = parse(["--env", "CartPole-v1", *words])
    assert (choice.config.env.num_envs, choice.config.steps, choice.config.optimizer.learning_rate) == (8, 5000, 1e-3)
    assert choice.run_dir == Path("a_b")


def test_training_with_short_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lr", "1e-3", "--num-envs", "8", "--device", "cpu", "--total-timesteps", "400", "--threads", "1"]
    assert main([*CARTPOLE, *words, "--evaluation.episodes", "2", "--run-dir", str(tmp_path / "run"), "--json"]) == 0
    assert '"steps": 400' in capsys.readouterr().out


def test_bench_refuses_a_number_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--steps", "--total-timesteps", "--total_timesteps"):
        words = ["bench", "--env", "CartPole-v1", option, "100"]
        assert "drop --steps, --run-dir and --resume" in error_line(words, capsys)


# ---------------------------------------------------------------------------------------------------- suggestions


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--learnig-rate", "--optimizer.learning-rate"),
        ("--learning-rate", "--optimizer.learning-rate"),
        ("--LearningRate", "--optimizer.learning-rate"),
        ("--optimiser.learning-rate", "--optimizer.learning-rate"),
        ("--optimizer.lr", "--lr"),
        ("--LR", "--lr"),
        ("--numEnvs", "--num-envs"),
        ("--n-envs", "--num-envs"),
        ("--totalTimesteps", "--total-timesteps"),
        ("--batch-size", "--data.batch-size-sequences"),
        ("--rundir", "--run-dir"),
        ("--hidden_unit", "--network.hidden-units"),
        ("--devise", "--device"),
        ("--learner.replya", "--data.replay"),
        ("--environment", "--env"),
        ("--gamma", "--learner.discount"),
        ("--verbose", None),
        ("--wandb", None),
        ("--gpu", None),
        ("--n-epochs", "--data.replay"),
        ("--n-steps", "--data.sequence-steps"),
        ("--clip-range", None),
        ("--buffer-size", None),
        ("--eps", None),
        ("--foo", None),
        ("--render", None),
        ("--size", None),
    ],
)
def test_a_misspelled_option_gets_the_right_suggestion_or_none(
    option: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    line = error_line([*CARTPOLE, option, "3"], capsys)
    assert f"unknown option {option.replace('_', '-')}." in line
    if meant is None:
        assert "Did you mean" not in line
    else:
        assert f"Did you mean '{meant}'?" in line


@pytest.mark.parametrize(
    ("preset", "option", "meant"),
    [
        ("ppo", "--n-steps", "--data.sequence-steps"),
        ("ppo", "--clip-range", "--learner.clip"),
        ("ppo", "--learner.clip-range", "--learner.clip"),
        ("ppo", "--clip-range-vf", "--learner.value-clip"),
        ("ppo", "--ent-coef", "--index-space.entropy-cost.fixed-value"),
        ("ppo", "--n-epochs", "--data.replay"),
        ("ppo", "--vf-coef", "--learner.value-loss-scale"),
        ("gdi-i3", "--vf-coef", "--learner.v-loss-scale"),
        ("ppo", "--max-grad-norm", "--optimizer.clip-norm"),
        ("dqn", "--n-steps", "--learner.n-steps"),
        ("dqn", "--buffer-size", "--data.capacity-transitions"),
        ("dqn", "--learning-starts", "--data.learn-start-transitions"),
        ("dqn", "--target-update-interval", "--learner.target-period-updates"),
        ("dqn", "--train-freq", "--data.period-transitions"),
        ("dqn", "--epsilon", "--controller.end"),
        ("gdi-i3", "--epsilon", "--index-space.epsilon.fixed-value"),
        ("gdi-i3", "--eval-freq", "--evaluation.every-steps"),
        ("gdi-i3", "--log-dir", "--run-dir"),
        ("dqn", "--ent-coef", None),
        ("impala", "--target-update-interval", None),
        ("ppo", "--buffer-size", None),
    ],
)
def test_names_of_stable_baselines3_are_answered_with_an_option_of_the_preset(
    preset: str, option: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    line = error_line(["train", preset, "--env", "CartPole-v1", option, "3"], capsys)
    assert line.endswith("See gdi train --help-all.\n")
    assert (f"Did you mean '{meant}'?" in line) if meant else ("Did you mean" not in line)


def test_every_synonym_leads_to_an_option_of_some_preset() -> None:
    known = {"--env", "--steps", "--run-dir"}
    for preset in PRESETS:
        known |= set(setting_options(make_config(preset)))
    known = {name for name in known if "." in name or name in ("--env", "--steps", "--run-dir")}
    assert [name for ours in SYNONYMS.values() for name in ours if name not in known] == []


def test_only_options_that_exist_are_suggested() -> None:
    assert nearest_options("--old-nam", ["--other"], {"--old-name": "--gone"}) == []
    assert nearest_options("--old-nam", ["--new"], {"--old-name": "--new"}) == ["--new"]
    assert nearest_options("--x", [], {}) == []
    axes = [f"--space.{axis}.low" for axis in "abcd"]
    assert nearest_options("--low", axes[:3], {}) == axes[:3]
    assert nearest_options("--low", axes, {}) == [], "four are not a suggestion"


def test_names_are_compared_without_dashes_underscores_and_case() -> None:
    assert did_you_mean("EPSILON_GREEDY", PRESETS) == " Did you mean 'epsilon-greedy'?"
    assert did_you_mean("zzz", PRESETS) == ""


@pytest.mark.parametrize("command", ["evaluate", "envs", "presets", "scores"])
def test_other_commands_suggest_options_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"evaluate": ["x", "--jsno"], "scores": ["x.csv", "--fromat", "csv"]}.get(command, ["--jsno"])
    meant = "--format" if command == "scores" else "--json"
    assert f"Did you mean '{meant}'?" in error_line([command, *words], capsys)


# ------------------------------------------------------------------------------------- an environment for a preset


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["CartPole-v1"], "CartPole-v1"),
        (["cartpole"], "CartPole-v1"),
        (["pong"], "pong"),
        (["ms_pacman", "--seed", "3"], "ms_pacman"),
        (["MinAtar/Breakout-v0"], "MinAtar/Breakout-v0"),
        (["my_module:Mine-v0"], "my_module:Mine-v0"),
        (["--seed", "3", "CartPole-v1"], "CartPole-v1"),
        (["CartPole-v1", "--help"], "CartPole-v1"),
        (["CartPole-v1", "--env", "CartPole-v1"], "CartPole-v1"),
    ],
)
@pytest.mark.parametrize("command", ["train", "bench"])
def test_an_environment_in_the_place_of_a_preset_is_recognized(
    command: str, words: list[str], env: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"is an environment, not a preset: use --env {env}." in error_line([command, *words], capsys)


def test_a_misspelled_preset_is_not_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("gdi-i4", "fixd", "randm", "boltzman"):
        assert find_environment(word) is None
        assert "unknown preset" in error_line(["train", word], capsys)


def test_a_run_folder_in_the_place_of_a_preset_is_recognized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"use --run-dir {tmp_path} --resume" in error_line(["train", str(tmp_path)], capsys)


# ---------------------------------------------------------------------------------------------- numbers and values


def test_huge_numbers_are_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    huge = str(10**400)
    for option in ("--steps", "--seed", "--num-envs", "--threads", "--data.replay", "--lr", "--placement.actors"):
        for number in (huge, f"-{huge}", "1" + "0" * 5000):
            line = error_line([*CARTPOLE, option, number], capsys)
            assert len(line) < 250
    for words in (["evaluate", "x", "--episodes"], ["theory", "--trials"], ["scores", "x.csv", "--replicates"]):
        assert len(error_line([*words, huge], capsys)) < 250
    assert whole_number(str(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lr", "fast"], "--lr needs a number, not 'fast'."),
        (["--num-envs", "1.5"], "--num-envs needs a whole number, not '1.5'."),
        (["--network.torso", "resnet"], "--network.torso 'resnet' is not a choice: use one of 'auto', 'mlp', "),
        (["--threads"], "--threads needs a value."),
        (["--steps"], "--steps needs a value."),
        (["--controller.tile-widths", "a", "b"], "--controller.tile-widths cannot take 'a', 'b'."),
        (["extra"], "unexpected argument 'extra'."),
    ],
)
def test_a_bad_value_is_named_with_its_option(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"gdi: error: {message}" in error_line([*CARTPOLE, *words], capsys)


# ------------------------------------------------------------------------------------------- the command as a program


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gdi", *words], capture_output=True, text=True, timeout=60)


def test_the_package_runs_as_a_module() -> None:
    for words in (("version",), ("--version",), ("-V",)):
        done = program(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{gdi.__version__}\n", "")
    assert program("trian").returncode == 2


@pytest.mark.parametrize("words", [["--help"], ["train", "--help-all"], ["evaluate", "--help"], ["envs"]])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_closed_pipe_is_quiet(words: list[str], buffered: bool) -> None:
    # The reader is gone before the first byte, so that the outcome does not depend on timing.
    code = f"import time; time.sleep(0.3); from gdi.cli.main import main; raise SystemExit(main({words!r}))"
    # Without a buffer argparse meets the closed pipe itself, and ignores it.
    codes = {CLOSED_PIPE} if buffered or words[-1] != "--help" else {0, CLOSED_PIPE}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) in codes
    process.stderr.close()


def test_the_package_lists_what_is_public() -> None:
    code = (
        "import gdi; print(*dir(gdi)); [getattr(gdi, name) for name in dir(gdi)]; import gdi.scores; print(*dir(gdi))"
    )
    first, second = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert first.split() == sorted([*gdi.__all__, "__version__"])
    assert "scores" in second.split()
    assert not [name for name in second.split() if name.startswith("_") and name != "__version__"]


def test_the_earlier_name_of_the_divergence_error_is_the_same_class() -> None:
    assert Diverged is DivergenceError


def test_sections_with_kinds_are_chosen_by_their_name() -> None:
    for section, known in KINDS.items():
        assert section in KIND_SECTIONS
        assert known == kinds(section)
        for kind, cls in known.items():
            words = ["--env", "CartPole-v1", option_name(section), kind]
            try:
                config = parse(words).config
            except gdi.errors.UserError:
                continue  # a kind may need others with it
            assert type(getattr(config, section)) is cls


def test_the_config_of_a_preset_is_what_its_name_and_nothing_else_gives() -> None:
    for preset in PRESETS:
        assert parse([preset, "--env", "CartPole-v1"]).config == replace(make_config(preset, "CartPole-v1"), seed=0)
