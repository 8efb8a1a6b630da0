"""A score under a changed protocol is labeled so, and has no normalized scores unless asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdi.cli.main import main
from gdi.config import EnvConfig
from gdi.envs.protocols import protocol_changes, protocol_of
from gdi.evaluation import Evaluation, normalized_scores, report_of
from gdi.scores.metrics import normalize
from gdi.scores.reference import load_reference
from helpers import error_line

PONG = "ALE/Pong-v5"


def changes(protocol: str, steps: int = 0, *kwargs: str) -> str:
    return protocol_changes(EnvConfig(PONG, protocol=protocol, max_episode_steps=steps, kwargs=kwargs))  # type: ignore[arg-type]


def test_every_change_of_a_protocol_is_named() -> None:
    assert changes("paper") == changes("machado") == changes("saber") == ""
    assert changes("paper", 50) == "episodes cut at 50 steps"
    # The paper cuts after 100,000 frames, which are 25,000 steps: a later cut changes nothing.
    assert changes("paper", 25_000) == ""
    assert changes("paper", 24_999) == "episodes cut at 24999 steps"
    assert changes("paper", 0, "full_action_space=false", "sticky_action_prob=0.25") == (
        "minimal actions, sticky actions 0.25"
    )
    assert changes("paper", 0, "max_noop_frames=0", "life_information=true") == (
        "at most 0 no-ops, the loss of a life restarts the game"
    )
    assert changes("machado", 0, "sticky_action_prob=0.25") == ""  # as it is anyway


def test_the_settings_reach_the_emulator() -> None:
    from gdi.envs import make_env

    config = EnvConfig(PONG, protocol="paper", kwargs=("full_action_space=false",))
    assert protocol_of(config).full_action_space is False
    env = make_env(config, 1)
    assert env.spec.num_actions == 6
    env.close()


def evaluation(changed: str) -> Evaluation:
    return Evaluation(PONG, 2, 10.0, 10.0, 9.0, 11.0, 1.0, 50.0, 0, "paper", changed, (9.0, 11.0))


def test_changed_scores_are_withheld_unless_asked_for() -> None:
    plain, cut = evaluation(""), evaluation("episodes cut at 50 steps")
    expected = normalize("pong", 10.0, load_reference("paper"))
    assert normalized_scores(plain) == expected
    assert normalized_scores(cut) == {"hns": None, "hwrns": None, "saber": None}
    assert normalized_scores(cut, anyway=True) == expected
    assert (plain.label, cut.label) == ("paper", "paper, changed: episodes cut at 50 steps")
    assert report_of(cut)["hns"] is None
    assert report_of(cut)["returns"] == [9.0, 11.0]
    # A checkpoint has no single returns, and names changes only if there are any.
    assert set(cut.to_dict()) - set(plain.to_dict()) == {"changes"}
    assert "returns" not in cut.to_dict()


def test_pong_that_is_cut_shows_no_hns_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    settings = "--steps 120 --num-envs 2 --evaluation.episodes 2 --threads 1 --network.lstm-units 0 "
    settings += "--network.torso impala-shallow --network.hidden-units 16 --run.device cpu --scale atari-cpu"
    argv = ["train", "--env", "pong", "--env.max-episode-steps", "50", "--run-dir", run, *settings.split()]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "HNS" not in out.replace("HNS, HWRNS and SABER do not apply", "")
    assert "protocol paper, changed: episodes cut at 50 steps" in out
    last = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()][-1]
    assert (last["kind"], last["hns"], last["changes"]) == ("evaluation", None, "episodes cut at 50 steps")
    assert len(last["returns"]) == 2

    assert main(["evaluate", run, "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "--scores-anyway shows them" in out
    assert "%" not in out
    assert main(["evaluate", run, "--episodes", "2", "--scores-anyway"]) == 0
    out = capsys.readouterr().out
    assert "HNS " in out
    assert "protocol paper, changed: episodes cut at 50 steps" in out

    assert "--mix-protocols" in error_line(["scores", run], capsys)
    assert main(["scores", run, "--mix-protocols", "--against", "none"]) == 0
    assert "changed: episodes cut at 50 steps" in capsys.readouterr().out
