"""The command line as a user meets it: JSON that parses, bad input in one line, nothing overwritten."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gdi.cli.main import COMMANDS, main
from gdi.cli.outcome import can_be_drawn, cut_text, resume_command
from gdi.cli.train import parse
from gdi.config import MultiplicativeWeightsConfig, config_from_json, config_to_json
from gdi.errors import UserError
from gdi.evaluation import Evaluation
from gdi.presets import PRESETS, SCALES, make_config
from gdi.report.console import LiveConsole
from helpers import error_line

TINY = [
    "--env=MinAtar/Breakout-v0",
    "--steps=400",
    "--env.num-envs=4",
    "--data.sequence-steps=5",
    "--data.batch-size-sequences=4",
    "--network.hidden-units=8",
    "--evaluation.episodes=2",
    "--run.threads=1",
]


@pytest.fixture(scope="module")
def run_dir(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(whole_run, tmp_path_factory.mktemp("runs") / "run")


def test_train_json_is_one_object_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gdi-h3", *TINY, "--run-dir", str(tmp_path / "run"), "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert out.count("\n") == 1
    assert result["steps"] == result["frames"] == 400
    assert result["run_dir"] == str(tmp_path / "run")
    assert result["seconds"] > 0
    assert {"env", "episodes", "mean", "median", "min", "max"} <= set(result["evaluation"])
    assert result["evaluation"]["episodes"] == 2
    assert "gdi-h3 at scale 'minatar'" in " ".join(err.split())  # the run says which scale it took


def test_train_says_where_it_is_kept_and_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *TINY, "--run-dir", str(tmp_path / "run")]) == 0
    out, _ = capsys.readouterr()
    assert f" evaluate {tmp_path / 'run'} --episodes 100" in out
    assert "mean" in out


def test_evaluate(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for seed in ("5", "5", "6"):
        assert main(["evaluate", str(run_dir), "--episodes", "7", "--seed", seed, "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]
    assert results[0] != results[2]
    assert results[0]["episodes"] == 7
    assert results[0]["env"] == "MinAtar/Breakout-v0"
    assert results[0]["min"] <= results[0]["median"] <= results[0]["max"]
    assert main(["evaluate", str(run_dir), "--episodes", "2", "--best"]) == 0
    assert "2 episodes" in capsys.readouterr().out


def test_evaluate_under_a_given_index(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1/τ = 0 is the uniform policy whatever θ is, and ε only says which of two components is drawn from."""
    told = {}
    for index in ("0,0,1", "0,300,1", "0,300,0", "300,0,1"):
        assert main(["evaluate", str(run_dir), "--json", "--index", index]) == 0
        told[index] = json.loads(capsys.readouterr().out)
    assert told["0,300,0"]["index"] == {"inverse_tau_1": 0.0, "inverse_tau_2": 300.0, "epsilon": 0.0}
    assert told["0,0,1"]["mean"] == told["0,300,1"]["mean"]
    assert told["0,300,0"]["mean"] == told["300,0,1"]["mean"] != told["0,0,1"]["mean"]


def test_presets_lists_every_preset_and_scale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    gdi = {"gdi-i3", "gdi-h3", "fixed", "random", "boltzmann", "epsilon-greedy"}
    assert set(listed["presets"]) == gdi | {"dqn", "ppo", "impala"}
    assert {"paper", "minatar", "classic"} <= set(listed["scales"])
    assert listed["presets"]["gdi-h3"]["network.families"] == 2
    assert main(["presets"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for kind in listed.values() for name in kind)
    assert len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_shows_the_values_that_train_uses(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The number next to an option is that of the same words in gdi train, not that of another scale."""
    words = [preset, "--env", "CartPole-v1"]
    assert main(["presets", *words]) == 0
    shown = capsys.readouterr().out
    config, paper = parse(words).config, make_config(preset, scale="paper")
    assert "at scale classic" in shown
    assert main(["presets", *words, "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["settings"]["--optimizer.learning-rate"] == config.optimizer.learning_rate
    )
    if preset == "ppo":
        assert (config.optimizer.learning_rate, paper.optimizer.learning_rate) == (1e-3, 2.5e-4)
        assert re.search(r"--optimizer.learning-rate +0.001 +0.002 ", shown)
        assert re.search(r"--learner.gae-lambda +0.8 ", shown), "a setting that gdi-i3 does not have"
        assert "0.00025" not in shown
        assert main(["presets", preset, "--scale", "paper"]) == 0
        assert re.search(r"--optimizer.learning-rate +0.00025 ", capsys.readouterr().out)


def test_large_seeds_are_taken_exactly() -> None:
    assert parse(["--env", "CartPole-v1", "--seed", "9007199254740993"]).config.seed == 2**53 + 1
    assert parse(["--env", "CartPole-v1", "--steps", "2e5"]).config.steps == 200_000
    assert parse(["--env", "CartPole-v1", "--steps", "200_000"]).config.steps == 200_000


def test_infinity_is_for_limits_only() -> None:
    config = parse(["--env", "CartPole-v1", "--optimizer.clip-norm", "inf", "--learner.c-bar", "inf"]).config
    assert (config.optimizer.clip_norm, config.learner.c_bar) == (math.inf, math.inf)
    for value in ("nan", "-inf"):
        with pytest.raises(UserError, match="finite"):
            parse(["--env", "CartPole-v1", "--optimizer.clip-norm", value])


def test_a_stopped_run_names_the_command_that_continues_it_where_it_ran() -> None:
    def command(*options: str) -> str:
        return resume_command(Path("my runs/a"), parse(["--env", "CartPole-v1", *options]))

    assert command() == "gdi train --run-dir 'my runs/a' --resume"
    placement = ("--placement.actors", "4", "--placement.learner-cpus", "2.0")
    assert command("--runtime", "ray", "--ray-address", "auto", *placement) == (
        "gdi train --run-dir 'my runs/a' --resume --runtime ray --ray-address auto "
        "--placement.actors 4 --placement.learner-cpus 2.0"
    )
    assert command("--runtime", "ray", "--placement.lockstep").endswith("--runtime ray --placement.lockstep")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main([command, "--help"])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 0
    assert "--" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "gdi-i4", "--env", "CartPole-v1"], "Did you mean 'gdi-i3'"),
        (["train", "--env", "CartPoel-v1"], "Did you mean 'CartPole-v1'"),
        (["train"], "add --env"),
        (["train", "--env", "Pendulum-v1"], "add --env.action-bins 5"),
        (["train", "--env", "CartPole-v1", "--scale", "papr"], "Did you mean 'paper'"),
        (["train", "--env", "CartPole-v1", "--steps", "0"], "--steps must be greater than 0"),
        (["train", "--env", "CartPole-v1", "--steps", "-5"], "--steps must be greater than 0"),
        (["train", "--env", "CartPole-v1", "--steps", "many"], "not a number"),
        (["train", "--env", "CartPole-v1", "--steps", "1.5"], "not a whole number"),
        (["train", "--env", "CartPole-v1", "--env.num-envs", "0"], "--env.num-envs"),
        (["train", "--env", "CartPole-v1", "--learner.replya", "3"], "Did you mean '--data.replay'"),
        (["train", "--env", "CartPole-v1", "--optimizer.learning-rate", "fast"], "learning-rate"),
        (["train", "--env", "CartPole-v1", "--network.torso", "resnet"], "impala-deep"),
        (["train", "--env", "CartPole-v1", "--network.torso", "nature"], "use --network.torso auto"),
        (["train", "--env", "CartPole-v1", "--network.lstm-units", "8", "--data.burn-in-steps", "9999"], "memory"),
        (["train", "--env", "CartPole-v1", "--resume"], "--resume needs a run to continue: add --run-dir"),
        (["train", "--env", "CartPole-v1", "--run.device", "cuda"], "no GPU"),
        (["train", "--env.id", "CartPole-v1"], "name the environment with --env"),
        (["train", "--env", "ray_nowhere:X-v0"], "no module 'ray_nowhere'"),
        (["train", "--env", "broken_world:X-v0"], "broken_world cannot be imported"),
        (["train", "--env", ":"], "not a valid module name"),
        (["train", "--env", ".foo:X-v0"], "not a valid module name"),
        (
            ["train", "--env", "CartPole-v1", "--optimizer.learning-rate", "inf"],
            "learning-rate must be a finite number",
        ),
        (["train", "--env", "CartPole-v1", "--learner.reward-scales", "nan"], "reward-scales must be a finite number"),
        (["train", "--env", "CartPole-v1", "--index-space.inverse-tau-1.high", "inf"], "must be a finite number"),
        (["train", "--env", "CartPole-v1", "--index-space.epsilon.block-width", "1e-12"], "blocks: widen it"),
        (["train", "--env", "CartPole-v1", "--run-dir", "x" * 300], "cannot be a run folder"),
        (["train", "--env", "CartPole-v1", "--network.hidden-units", "5000000"], "does not fit in memory"),
        (["evaluate", "x", "--index", "1,b,0.5"], "is not a list of numbers such as"),
        (["evaluate", "x", "--index", "1,2,1", "--video", "x.mp4"], "exploration setting (λ): drop --index"),
        (["evaluate"], "missing RUN_DIR: add it"),
        (["actors", "x"], "missing N: add it"),
        (["train", "--run-dir", "nope", "--resume"], "--run-dir nope does not exist: check the name, or add --env"),
        (["train", "--env", "CartPole-v1", "--learner", "dqn"], "--index-space gdi: use the preset dqn."),
        (["train", "ppo", "--env", "CartPole-v1", "--learner", "gdi"], "use the preset gdi-i3."),
        (["train", "dqn", "--env", "CartPole-v1", "--data.replay", "3"], "is an option of --data exact"),
        (["bench", "--env", "CartPole-v1", "--learner.clip", "3"], "--learner.clip is an option of --learner ppo, and"),
        (["train", "--env", "CartPole-v1", "--lr", "-1"], "error: --lr must be greater than 0"),
        (["train", "--env", "CartPole-v1", "--device", "gpu"], "error: --device must be auto, cpu or cuda"),
        (["train", "--env", "CartPole-v1", "--device", "cuda"], "error: --device cuda: no GPU"),
        (["train", "--env", "CartPole-v1", "--run.device", "gpu"], "error: --run.device must be auto, cpu or cuda"),
        (["train", "--env", "CartPole-v1", "--total-timesteps", "0"], "error: --total-timesteps must be greater"),
        (["evaluate", "no/such/run"], "does not exist"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(
    argv: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "broken_world.py").write_text("from os import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if "cuda" in argv:
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert message in error_line(argv, capsys)
    assert list((tmp_path / "here").iterdir()) == []


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_folder_in_use_is_not_touched(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(run_dir)
    assert "--resume" in error_line(["train", *TINY, "--run-dir", str(run_dir)], capsys)
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1.tex").write_text("precious")
    assert "not empty" in error_line(["train", *TINY, "--run-dir", str(mine)], capsys)
    assert "not a run folder" in error_line(["train", *TINY, "--run-dir", str(mine), "--resume"], capsys)
    (mine / "file").write_text("")
    assert "is a file" in error_line(["train", *TINY, "--run-dir", str(mine / "file")], capsys)
    assert contents(run_dir) == before
    assert contents(mine) == {"chapter1.tex": b"precious", "file": b""}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (["--data.replay=3"], "data.replay was 2 and is now 3"),
        (["--seed=99"], "seed was 7 and is now 99"),
        (["--steps=9999"], "steps was 1200 and is now 9999"),
        (["fixed"], "preset was 'gdi-i3' and is now 'fixed'"),
        (["--env=CartPole-v1"], "env.id"),
    ],
)
def test_resuming_with_another_config_names_the_field(
    run_dir: Path, change: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run_dir)
    assert field in error_line(["train", *change, "--run-dir", str(run_dir), "--resume"], capsys)
    assert contents(run_dir) == before


def test_a_run_folder_without_resume_is_answered_as_such(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(run_dir)
    line = error_line(["train", "--run-dir", str(run_dir)], capsys)
    assert f"--run-dir {run_dir} already holds a run: add --resume to continue it." in line
    assert contents(run_dir) == before


def test_resuming_a_finished_run_says_that_it_is_finished(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--run-dir", str(run_dir), "--resume"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("This run is already finished: 1,200 steps. Evaluation over ")
    assert "A run keeps its --steps. For more steps, start a new run" in out
    assert "resuming" not in out
    assert "Done" not in out


def test_the_end_of_a_training_names_the_commands_that_come_next(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--run-dir", str(run_dir), "--resume"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.endswith("Next:"))
    for line, name in zip(lines[begin + 1 : begin + 4], ("evaluate", "report", "play"), strict=True):
        assert f" {name} {run_dir}" in line


def test_what_can_be_drawn_is_known_without_making_it() -> None:
    drawn = ("CartPole-v1", "MinAtar/Breakout-v0", "ALE/Pong-v5")
    assert [can_be_drawn(name) for name in (*drawn, "no_module:Nothing-v0", "file.py:Own")] == [True] * 3 + [False] * 2


def test_an_evaluation_names_the_setting_that_it_played(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(run_dir), "--episodes", "1"]
    assert main(words) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    number = r"[\d.]+( to [\d.]+)?"
    setting = f"1/τ1 {number}, 1/τ2 {number}, ε {number}"
    assert re.fullmatch(rf"  exploration setting: {setting} \(the controller's best\)", line)
    assert main([*words, "--index", "100,300,0.5"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "  exploration setting: 1/τ1 100, 1/τ2 300, ε 0.5 (--index)"


def test_cut_episodes_are_told_with_their_limit() -> None:
    config = make_config("gdi-i3", "CartPole-v1")
    evaluation = Evaluation("CartPole-v1", 32, 27e3, 27e3, 27e3, 27e3, 0.0, 27e3, cut_episodes=32)
    limit = "because they did not end (--env.max-episode-steps)"
    assert cut_text(evaluation, config) == f"32 of 32 episodes were cut at 27,000 steps, {limit}"
    longer = replace(config, env=replace(config.env, max_episode_steps=30_000))
    assert cut_text(replace(evaluation, cut_episodes=1), longer) == (
        f"1 of 32 episodes was cut at 30,000 steps, {limit}"
    )


def test_the_sizes_of_a_scale_are_those_of_its_presets() -> None:
    steps = [make_config(preset, scale="classic").steps for preset in PRESETS]
    assert (min(steps), max(steps)) == (50_000, 500_000)
    assert "50k to 500k steps, by preset" in SCALES["classic"].summary
    for scale, words in {"minatar": "1M steps", "atari-cpu": "4M steps"}.items():
        assert words in SCALES[scale].summary
        assert {make_config(preset, scale=scale).steps for preset in PRESETS} == {int(words[0]) * 1_000_000}


def test_a_stop_in_the_final_evaluation_is_named_and_the_evaluation_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stop is requested when the last step is sampled, so that only the evaluation is missing."""
    from gdi.runtime import session

    steps = 0

    @contextmanager
    def stop_at_the_end() -> Iterator[Callable[[], bool]]:
        yield lambda: steps >= 400

    class Watching(LiveConsole):
        def event(self, event: dict[str, Any]) -> None:
            nonlocal steps
            steps = event.get("steps", steps)
            super().event(event)

    folder = str(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(session, "stop_on_signal", stop_at_the_end)
        patch.setattr("gdi.report.console.LiveConsole", Watching)
        assert main(["train", *TINY, "--run-dir", folder]) == 0
    out = capsys.readouterr().out
    assert "Stopped before the final evaluation, after all 400 steps. Everything is saved." in out
    assert f"continue   gdi train --run-dir {folder} --resume" in out
    assert main(["train", "--run-dir", folder, "--resume"]) == 0
    out = capsys.readouterr().out
    assert "resuming at 400 of 400 steps" in " ".join(out.split())
    assert "Done: 400 steps" in out
    assert "already finished" not in out


def test_resuming_a_finished_run_gives_its_result_again(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for _ in range(2):
        assert main(["train", "--run-dir", str(run_dir), "--resume", "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["evaluation"] == results[1]["evaluation"]
    assert results[0]["steps"] == 1200


def test_evaluating_what_cannot_be_evaluated(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--episodes" in error_line(["evaluate", str(run_dir), "--episodes", "0"], capsys)
    assert "not a run folder" in error_line(["evaluate", str(tmp_path)], capsys)
    empty = tmp_path / "young"
    (empty / "checkpoints").mkdir(parents=True)
    (empty / "config.json").write_bytes((run_dir / "config.json").read_bytes())
    assert "no checkpoint yet" in error_line(["evaluate", str(empty)], capsys)
    (empty / "checkpoints" / "step-1").mkdir()
    assert "damaged" in fails_after_warnings(["evaluate", str(empty)], capsys)
    (empty / "config.json").write_text("{")
    assert "cannot be read" in error_line(["evaluate", str(empty)], capsys)


def fails_after_warnings(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_options_may_stand_anywhere_and_lists_take_many_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [
        "train",
        *TINY,
        "boltzmann",
        "--controller.tile-widths",
        "2",
        "5",
        "--run-dir",
        str(tmp_path / "run"),
        "--json",
    ]
    assert main(argv) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["preset"] == "boltzmann"
    assert config["controller"]["tile_widths"] == [2, 5]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("1,2", "λ = (1/τ1, 1/τ2, ε) has 3 numbers, not 2"),
        ("1,nan,0.5", "1/τ2 must be 0 or more, not nan"),
        ("-1,2,0.5", "1/τ1 must be 0 or more, not -1"),
        ("1,2,1.5", "ε must be in [0, 1], not 1.5"),
    ],
)
def test_an_index_outside_the_space_is_one_line(index: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(__file__).parent / "data" / "format1" / "run-minatar"
    assert words in error_line(["evaluate", str(run), f"--index={index}"], capsys)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--learner.sequence-steps", "7"], ["--data.sequence-steps", "7"]),
        (["--learner.batch-size-sequences=3"], ["--data.batch-size-sequences=3"]),
        (["--learner.sequence_steps", "7"], ["--data.sequence-steps", "7"]),
        (["--learner.learning-rate", "1e-4"], ["--optimizer.learning-rate", "1e-4"]),
        (["--learner.workers", "2"], ["--run.workers", "2"]),
        (["--network.reward-scales", "0.5"], ["--learner.reward-scales", "0.5"]),
        (["--controller.kind", "uniform"], ["--controller", "uniform"]),
        (["--controller.kind=fixed"], ["--controller=fixed"]),
    ],
)
def test_options_that_were_renamed_keep_their_old_names(old: list[str], new: list[str]) -> None:
    plain = parse(["--env", "CartPole-v1"]).config
    assert parse(["--env", "CartPole-v1", *old]).config == parse(["--env", "CartPole-v1", *new]).config != plain


def test_another_kind_of_controller_brings_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--env", "CartPole-v1", "--controller", "multiplicative-weights", "--controller.step-size", "0.3"]
    assert parse(words).config.controller == MultiplicativeWeightsConfig(step_size=0.3)
    line = error_line(["train", *words[:2], *words[4:]], capsys)
    assert "--controller.step-size is an option of --controller multiplicative-weights" in line
    assert "this run has --controller tile-bandit: drop it." in line
    assert main(["train", "--help-all", "--controller", "uniform"]) == 0
    shown = capsys.readouterr().out
    assert "--controller.per-environment" in shown
    assert "--controller.num-bandits" not in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--controller", "unifrom"], "unknown --controller 'unifrom'. Did you mean 'uniform'?"),
        (["--controller"], "--controller needs a value"),
    ],
)
def test_a_kind_that_does_not_exist_is_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in error_line(["train", "--env", "CartPole-v1", *words], capsys)


FORMAT_1_RUN = Path(__file__).parent / "data" / "format1" / "run-minatar"
HUGE = "1" + "0" * 400


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("value", [HUGE, f"-{HUGE}", "1" + "0" * 5000, nested(900), nested(100_000)])
@pytest.mark.parametrize(
    "field", ["steps", "seed", "learning_rate", "num_bandits", "tile_widths", "num_envs", "device", "torso", "data"]
)
def test_huge_and_nested_values_of_a_stored_config_are_one_line(
    field: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(FORMAT_1_RUN, folder)
    stored = json.loads((folder / "config.json").read_text())
    marked = {**stored, field: "MARK"} if field in stored or field == "data" else stored
    for section in marked.values():
        if isinstance(section, dict) and field in section:
            section[field] = "MARK"
    (folder / "config.json").write_text(json.dumps(marked).replace('"MARK"', value))
    for argv in (["evaluate", str(folder)], ["train", "--run-dir", str(folder), "--resume"]):
        assert len(error_line(argv, capsys)) < 400


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise RuntimeError('first line\\nsecond')", "RuntimeError: first line second."),
        ("1 / 0", "ZeroDivisionError: division by zero."),
        ("import sys; sys.exit(3)", "SystemExit: 3."),
        ("raise KeyError", "KeyError: no message."),
        ("def f(:", "cannot be imported: SyntaxError"),
        ("import nowhere_at_all", "cannot be imported: No module named 'nowhere_at_all'."),
    ],
)
def test_a_trusted_module_that_fails_is_one_line(
    source: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(FORMAT_1_RUN, folder)
    config = json.loads(config_to_json(config_from_json((folder / "config.json").read_text())))
    (folder / "config.json").write_text(json.dumps({**config, "controller": {"kind": "failing_module:Mine"}}))
    (tmp_path / "failing_module.py").write_text(source + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for argv in (["evaluate", str(folder), "--trust"], ["train", "--run-dir", str(folder), "--resume", "--trust"]):
        assert words in error_line(argv, capsys)
