"""Videos of games: the same game as in training, every frame of it, in a file that is whole or not there."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from ale_py import ALEInterface, roms

import gdi
from gdi.cli.main import main
from gdi.config import EnvConfig, GDISpace
from gdi.envs import minatar
from gdi.envs.atari import AtariEnv
from gdi.envs.atari_screen import AtariScreen, seeded_screen
from gdi.envs.base import Beside, Drawable
from gdi.envs.protocols import PROTOCOLS, AtariProtocol
from gdi.envs.registry import make_unguarded
from gdi.envs.screen import ScreenStep, make_screen
from gdi.errors import UserError
from gdi.evaluation.video import Mp4Writer, RecordedEpisode, check_path, draw, drawable, record, video_size
from gdi.evaluation.window import Window, WindowClosedError, check_display
from gdi.index_space import make_index_space
from gdi.seeds import child_seed
from gdi.types import Array, Index
from helpers import error_line, tiny_config

NO_NOOPS = replace(PROTOCOLS["paper"], max_noop_frames=0)
WIDTH, HEIGHT, STRIP = 480, 688, 58
LAMBDA = (1.25, 0.5, 0.75)
SPACE = make_index_space(GDISpace())


def caption(index: Index) -> str:
    return drawable(SPACE.text(index))


class Scripted:
    """A player whose actions are known beforehand, and who remembers what was shown to it."""

    named_index = SPACE.by_name(LAMBDA)

    def caption(self) -> str:
        return SPACE.text(LAMBDA)

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.seen: list[tuple[Array, float, int]] = []

    def reset(self) -> None: ...

    def choose(self, obs: Array, beside: Beside, reward: float = 0.0) -> int:
        action = int(self._rng.integers(18))
        self.seen.append((obs[0], reward, action))
        return action


def read(path: Path) -> tuple[dict[str, Any], list[Array]]:
    """The header, and all frames, each [height, width, 3], of a video."""
    frames = imageio_ffmpeg.read_frames(str(path))
    meta: dict[str, Any] = next(frames)
    width, height = meta["size"]
    return meta, [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A barely trained agent of Breakout, whose episodes are cut after 12 steps."""
    torch.set_num_threads(1)
    config = tiny_config("ALE/Breakout-v5", steps=40, batch_size_sequences=2, replay=1, replay_span_windows=1)
    folder = tmp_path_factory.mktemp("runs") / "run"
    gdi.train(
        replace(
            config,
            env=replace(config.env, num_envs=2, max_episode_steps=12),
            network=replace(config.network, torso="nature", lstm_units=8),
            evaluation=replace(config.evaluation, episodes=1),
        ),
        folder,
    )
    return folder


# The emulator.


@pytest.mark.parametrize(
    ("game", "protocol", "max_episode_steps", "steps", "ends"),
    [
        ("breakout", NO_NOOPS, 0, 450, "terminated"),
        ("breakout", PROTOCOLS["machado"], 0, 450, "terminated"),  # sticky actions, drawn by ALE from the same seed
        # Cut without sticky actions: after a cut the vector environment plays one hidden step, which takes their draws.
        ("ms_pacman", NO_NOOPS, 37, 200, "truncated"),  # cut by the config
        ("space_invaders", replace(NO_NOOPS, cut_frames=403), 0, 250, "truncated"),  # after 100 whole steps
        ("freeway", replace(NO_NOOPS, stuck_frames=402), 0, 220, "truncated"),  # stuck
        ("pong", replace(NO_NOOPS, stuck_frames=400), 0, 200, ""),  # not stuck: it loses, which is a reward too
    ],
)
def test_the_screen_is_the_game_that_trains(
    game: str, protocol: AtariProtocol, max_episode_steps: int, steps: int, ends: str
) -> None:
    """Byte for byte, over several episodes."""
    env = AtariEnv(game, 1, protocol, max_episode_steps, threads=1)
    emulator_seed = int(np.random.SeedSequence(5).generate_state(1)[0] >> 1)  # as AtariEnv makes it
    screen = AtariScreen(game, protocol, np.random.default_rng(0), emulator_seed, max_episode_steps)
    rng = np.random.default_rng(1)
    expected = env.reset(5)[0]
    step = screen.reset()
    np.testing.assert_array_equal(step.obs, expected)
    seen = {"terminated": 0, "truncated": 0}
    for _ in range(steps):
        action = int(rng.integers(18))
        step = screen.reset() if step.terminated or step.truncated else screen.step(action)
        result = env.step(np.array([action]))
        np.testing.assert_array_equal(step.obs, result.obs[0])
        assert step[1:4] == (result.reward[0], result.terminated[0], result.truncated[0])
        seen["terminated"] += step.terminated
        seen["truncated"] += step.truncated
    env.close()
    assert [end for end, count in seen.items() if count > 1] == ([ends] if ends else [])


def test_every_emulator_frame_is_shown_in_its_colors() -> None:
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path("ms_pacman"))
    ale.reset_game()
    screen = AtariScreen("ms_pacman", NO_NOOPS, np.random.default_rng(0), 0)
    first = screen.reset()
    assert len(first.frames) == 1
    np.testing.assert_array_equal(first.frames[0].image, ale.getScreenRGB())
    rng = np.random.default_rng(2)
    rewards = []
    for _ in range(90):
        action = int(rng.integers(18))
        step = screen.step(action)
        assert len(step.frames) == 4
        assert step.reward == sum(frame.reward for frame in step.frames)
        for image, reward in step.frames:
            assert reward == ale.act(ale.getLegalActionSet()[action])
            np.testing.assert_array_equal(image, ale.getScreenRGB())
            rewards.append(reward)
    assert any(rewards)


def test_noops_are_uniform_from_one_and_no_part_of_the_episode() -> None:
    protocol = replace(PROTOCOLS["paper"], max_noop_frames=3)

    def counts(seed: int) -> list[int]:
        screen = AtariScreen("pong", protocol, np.random.default_rng(seed), 0)
        return [int(screen._ale.getEpisodeFrameNumber()) for _ in range(45) if screen.reset()]

    drawn = counts(1)
    assert set(drawn) == {1, 2, 3}
    assert min(np.bincount(drawn)[1:]) > 5
    assert drawn == counts(1) != counts(2)
    screen = seeded_screen("pong", PROTOCOLS["paper"], 0, max_episode_steps=5)
    screen.reset()
    assert [screen.step(0).truncated for _ in range(5)] == [False] * 4 + [True]


def test_a_seed_is_the_whole_chance_of_a_screen() -> None:
    def play(seed: int) -> list[ScreenStep]:
        screen = seeded_screen("breakout", replace(PROTOCOLS["machado"], max_noop_frames=30), seed)
        return [screen.reset(), *(screen.step(i % 18) for i in range(60))]

    def pixels(steps: list[ScreenStep]) -> bytes:
        return b"".join(step.obs.tobytes() for step in steps)

    assert pixels(play(1)) == pixels(play(1))
    assert pixels(play(1)) != pixels(play(2))


def test_a_protocol_that_the_screen_does_not_know_is_refused() -> None:
    with pytest.raises(UserError, match="life_information=true cannot be drawn: drop it"):
        seeded_screen("pong", replace(NO_NOOPS, life_information=True), 0)


# The picture and the file.


def test_the_picture_is_enlarged_exactly_and_the_strip_tells_score_and_lambda() -> None:
    image = np.random.default_rng(0).integers(256, size=(210, 160, 3), dtype=np.uint8)
    text = caption(LAMBDA)
    picture = draw(image, 12, 5, text)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert video_size((210, 160, 3)) == (WIDTH, HEIGHT)
    np.testing.assert_array_equal(picture[STRIP:], image.repeat(3, axis=0).repeat(3, axis=1))
    np.testing.assert_array_equal(picture, draw(image, 12, 5, text))
    assert (picture[:STRIP] != draw(image, 13, 5, text)[:STRIP]).any()
    for other in ((2.0, 0.5, 0.75), (1.25, 2.0, 0.75), (1.25, 0.5, 0.5)):
        assert (picture[:STRIP] != draw(image, 12, 5, caption(other))[:STRIP]).any()
    assert caption(LAMBDA) == "1/tau1 1.25  1/tau2 0.5  eps 0.75"
    assert drawable("β 1 ☃") == "beta 1 ?"
    # The longest text fits: nothing is drawn in the last columns.
    longest = draw(image, 123_456_789, 99_999, caption((0.000123, 0.000123, 0.000123)))
    assert longest[:STRIP].any()
    assert not longest[:STRIP, -6:].any()
    assert not longest[34:STRIP, -20:].any()


class Recorded(NamedTuple):
    """A video: what was told of it, what is in it, and what must be in it, from a second playing."""

    path: Path
    player: Scripted
    told: list[RecordedEpisode]
    meta: dict[str, Any]
    frames: list[Array]
    expected: list[Array]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """40 steps in which a brick is hit."""
    path = tmp_path_factory.mktemp("video") / "out.mp4"
    recorded_player = Scripted(1)
    told = record(path, seeded_screen("breakout", NO_NOOPS, 0, 40), recorded_player)
    screen, player = seeded_screen("breakout", NO_NOOPS, 0, 40), Scripted(1)
    step = screen.reset()
    score = 0.0
    frames = [draw(step.frames[0].image, score, 0, caption(LAMBDA))]
    while not (step.terminated or step.truncated):
        step = screen.step(player.choose(step.obs[None], step.beside))
        for image, reward in step.frames:
            score += reward
            frames.append(draw(image, score, len(player.seen), caption(LAMBDA)))
    return Recorded(path, recorded_player, told, *read(path), frames)


def test_the_video_has_every_frame_at_60_a_second(recorded: Recorded) -> None:
    _, _, told, meta, frames, expected = recorded
    assert meta["fps"] == 60
    assert meta["codec"].startswith("h264")
    assert meta["pix_fmt"].startswith("yuv420p")
    assert meta["size"] == (WIDTH, HEIGHT)
    assert len(frames) == 1 + 40 * 4 == len(expected)
    assert meta["duration"] == pytest.approx(len(frames) / 60, abs=0.02)
    assert [(e.length_steps, e.length_frames, e.truncated, e.index) for e in told] == [
        (40, 160, True, SPACE.by_name(LAMBDA))
    ]
    for frame, wanted in zip(frames, expected, strict=True):
        assert np.abs(frame.astype(np.int16) - wanted).mean() < 4  # what H.264 loses
    # The bricks: six rows, six colors.
    bricks = frames[100][STRIP + 3 * 57 : STRIP + 3 * 93 : 18, WIDTH // 4].astype(int)
    assert len({tuple(color // 24) for color in bricks}) > 3
    assert np.ptp(bricks, axis=1).max() > 60


def test_the_running_score_is_drawn_on_the_frame_that_scores(recorded: Recorded) -> None:
    path, _, told, _, frames, expected = recorded
    score = [frame[:STRIP, : WIDTH // 2] for frame in expected]  # the step stands on the right
    changes = [i for i in range(1, 161) if (score[i] != score[i - 1]).any()]
    assert told[0].score == len(changes) == 1  # a brick of the lowest rows is worth 1
    at = changes[0]
    earlier, before, after = (frame[:STRIP, : WIDTH // 2].astype(int) for frame in frames[at - 2 : at + 1])
    assert np.abs(after - before).max() > np.abs(before - earlier).max() + 100
    assert list(path.parent.iterdir()) == [path]


def test_the_player_sees_what_the_game_shows_in_training(recorded: Recorded) -> None:
    env = AtariEnv("breakout", 1, NO_NOOPS, 40, threads=1)
    obs, last_reward = env.reset(0), 0.0
    for observation, reward, action in recorded.player.seen:
        np.testing.assert_array_equal(observation, obs[0])
        assert reward == last_reward
        obs, rewards, _, _ = env.step(np.array([action]))
        last_reward = float(rewards[0])
    env.close()
    assert len(recorded.player.seen) == 40
    assert any(reward for _, reward, _ in recorded.player.seen)


def test_an_interrupted_recording_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)

    def interrupted() -> None:
        with Mp4Writer(path, (WIDTH, HEIGHT), 60) as video:
            for _ in range(10):
                video.write(image)
            assert not path.exists()  # what kills us now leaves no half file of that name
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_video_that_is_not_whole_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)

    def killed(frames_afterwards: int) -> None:
        with Mp4Writer(path, (WIDTH, HEIGHT), 60) as video:
            video.write(image)
            ffmpeg = video._ffmpeg.gi_frame.f_locals["p"]
            ffmpeg.kill()
            ffmpeg.wait()
            for _ in range(frames_afterwards):
                video.write(image)

    with pytest.raises(UserError, match="ffmpeg stopped"):
        killed(frames_afterwards=3)
    with pytest.raises(UserError, match="is incomplete"):
        killed(frames_afterwards=0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"

    def late() -> None:
        with Mp4Writer(path, (WIDTH, HEIGHT), 60) as video:
            video.write(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
            path.write_text("precious")

    with pytest.raises(UserError, match="created during the recording"):
        late()
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


# The agent.


def test_the_agent_stacks_single_frames_itself(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = gdi.load(run_dir)
    seen: list[tuple[Array, bool]] = []
    network = agent._player.network

    def watching(inputs: Any, state: Any) -> Any:
        seen.append((inputs.obs[0, 0].numpy().copy(), bool(inputs.episode_start)))
        return network(inputs, state)

    monkeypatch.setattr(agent._player, "network", watching)
    monkeypatch.setattr(watching, "initial_state", network.initial_state, raising=False)
    frames = np.random.default_rng(0).integers(256, size=(6, 84, 84), dtype=np.uint8)
    agent.reset()
    actions = [agent.act(frame) for frame in frames[:5]]
    agent.reset()
    actions.append(agent.act(frames[5]))
    for (obs, start), stack in zip(
        seen, [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 2), (0, 1, 2, 3), (1, 2, 3, 4), (5, 5, 5, 5)], strict=True
    ):
        np.testing.assert_array_equal(obs, np.moveaxis(frames[list(stack)], 0, -1))
        assert start == (stack[0] == stack[3])
    assert all(0 <= action < 18 for action in actions)


def test_evaluate_with_a_video(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one.mp4", tmp_path / "two.mp4"
    argv = ["evaluate", str(run_dir), "--episodes", "1", "--seed", "3"]
    assert main([*argv, "--json"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert main([*argv, "--json", "--video", str(one)]) == 0
    out, _ = capsys.readouterr()
    assert out.count("\n") == 1
    told = json.loads(out)
    video = told.pop("video")
    assert told == without  # the evaluation is the ordinary one
    assert video["path"] == str(one)
    (episode,) = video["episodes"]
    assert (episode["length_steps"], episode["length_frames"], episode["truncated"]) == (12, 48, True)
    meta, frames = read(one)
    assert (len(frames), meta["fps"], meta["size"]) == (49, 60, (WIDTH, HEIGHT))
    # λ is the agent's own for this seed, and it is what stands there.
    agents = [gdi.load(run_dir, seed=seed) for seed in (3, 0)]
    for agent in agents:
        agent.reset()
    assert agents[0].named_index == episode["index"] != agents[1].named_index
    wanted = draw(np.zeros((210, 160, 3), np.uint8), 0, 0, caption(tuple(episode["index"].values())))[:STRIP]
    assert np.abs(frames[0][:STRIP].astype(int) - wanted).mean() < 4
    # The same seed plays the same first episode, and then another one.
    assert main([*argv, "--video", str(two), "--video-episodes", "2"]) == 0
    assert f"video in {two}, score " in capsys.readouterr().out
    longer = read(two)[1]
    assert len(longer) == 2 * 49
    assert np.abs(frames[48].astype(int) - longer[48]).mean() < 2
    assert np.abs(longer[49][:STRIP].astype(int) - wanted).max() > 100  # λ is a new one


# The random agent.


def test_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PROTOCOLS, "paper", replace(PROTOCOLS["paper"], cut_frames=102))
    assert main(["play", "Breakout", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "breakout, random agent, protocol paper, seed 3: score " in out
    assert "HNS" in out
    assert [p.name for p in tmp_path.iterdir()] == ["breakout-seed3.mp4"]
    assert len(read(tmp_path / "breakout-seed3.mp4")[1]) == 101  # 25 whole steps, and the first screen
    assert main(["play", "ALE/Breakout-v5", "--seed", "3", "--video", "again.mp4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["game"], told["protocol"], told["seed"], told["video"]) == ("breakout", "paper", 3, "again.mp4")
    assert (told["length_steps"], told["length_frames"], told["truncated"]) == (25, 100, True)
    assert f"score {told['score']:.0f}\n" in out
    assert (tmp_path / "again.mp4").read_bytes() == (tmp_path / "breakout-seed3.mp4").read_bytes()


# A window.


def test_a_window_shows_what_a_video_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gdi.train(tiny_config("CartPole-v1", steps=80), tmp_path / "run")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown: list[Array] = []
    show = Window.show
    monkeypatch.setattr(Window, "show", lambda self, image: (shown.append(image), show(self, image))[1])
    argv = ["play", str(tmp_path / "run"), "--seed", "2", "--json"]
    assert main(argv) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert len(shown) == 1 + episode["length_steps"] == 1 + episode["score"]
    monkeypatch.delenv("SDL_VIDEODRIVER")
    assert main([*argv, "--video", str(tmp_path / "out.mp4")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["episodes"] == [episode]
    _, frames = read(tmp_path / "out.mp4")
    for frame, wanted in zip(frames, shown, strict=True):
        assert np.abs(frame.astype(int) - wanted).mean() < 4


def test_escape_closes_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    image = np.full((32, 48, 3), 200, np.uint8)
    with Window("gdi", (48, 32), 1000) as window:
        window.show(image)
        assert tuple(pygame.display.get_surface().get_at((40, 20)))[:3] == (200, 200, 200)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_x))
        window.show(image)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
        with pytest.raises(WindowClosedError):
            window.show(image)


def test_a_terminal_without_a_display_says_what_to_do(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    assert "no display for a window: add --video play.mp4" in error_line(["play", str(run_dir)], capsys)
    check_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    check_display({}, "darwin")
    assert "--protocol is that of the run" in error_line(["play", str(run_dir), "--protocol", "paper"], capsys)
    assert "--episodes must be greater" in error_line(["play", str(run_dir), "--episodes", "0"], capsys)
    assert "--best needs a run folder" in error_line(["play", "pong", "--best"], capsys)


# Bad input.


@pytest.fixture
def _nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(*args: Any, **options: Any) -> None:
        pytest.fail("something was played")

    monkeypatch.setattr(gdi.Agent, "evaluate", played)
    monkeypatch.setattr(AtariScreen, "reset", played)


@pytest.mark.usefixtures("_nothing_is_played")
@pytest.mark.parametrize("command", ["evaluate", "play"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.avi", "does not end in .mp4"),
        ("out", "does not end in .mp4"),
        ("here.mp4", "already exists"),
        ("folder.mp4", "already exists"),
        ("no/such/out.mp4", "no folder no/such"),
        ("here.mp4/out.mp4", "no folder here.mp4"),
        ("x" * 250 + ".mp4", "File name too long"),
    ],
)
def test_a_video_that_cannot_be_written_fails_before_anything_is_played(
    command: str,
    target: str,
    message: str,
    run_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.mp4").write_text("precious")
    Path("folder.mp4").mkdir()
    what = str(run_dir) if command == "evaluate" else "pong"
    assert message in error_line([command, what, "--video", target], capsys)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.mp4", "here.mp4"]
    assert Path("here.mp4").read_text() == "precious"


@pytest.mark.usefixtures("_nothing_is_played")
def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # root may write everywhere

        def denied(*args: Any, **options: Any) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "touch", denied)
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"cannot write .*out\.mp4: Permission denied"):
        check_path(tmp_path / "out.mp4")


@pytest.mark.usefixtures("_nothing_is_played")
@pytest.mark.parametrize("package", ["cv2", "imageio_ffmpeg"])
def test_missing_packages_are_named(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    err = error_line(["play", "pong"], capsys)
    assert package in err
    assert "'.[video]'" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_nothing_is_played")
def test_a_missing_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(UserError, match="needs ffmpeg"):
        check_path(tmp_path / "out.mp4")


@pytest.mark.usefixtures("_nothing_is_played")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["breakot"], "Did you mean 'breakout'"),
        (["CartPole-v1"], "CartPole-v1 is neither a run folder nor one of the 57 Atari games."),
        (["runs/none"], "runs/none is neither a run folder nor one of the 57 Atari games."),
        (["MinAtar/Breakout-v0"], "is neither a run folder nor one of the 57 Atari games."),
        (["pooyan"], "not one of the benchmark's 57"),
        (["pong", "--protocol", "sabre"], "Did you mean 'saber'"),
        (["pong", "--seed", "-1"], "--seed must be 0 or more"),
        (["pong", "--seed", "x"], "not a number"),
        ([], "missing RUN_OR_GAME"),
    ],
)
def test_what_cannot_be_played(
    argv: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in error_line(["play", *argv], capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_nothing_is_played")
def test_evaluate_refuses_odd_requests(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate, path = ["evaluate", str(run_dir)], str(tmp_path / "out.mp4")
    assert "needs a video: add --video" in error_line([*evaluate, "--video-episodes", "2"], capsys)
    assert "--video-episodes must be" in error_line([*evaluate, "--video", path, "--video-episodes", "0"], capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_environment_without_pictures_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gdi.Agent, "evaluate", lambda *_: pytest.fail("something was played"))
    for env_id, message in (
        ("Toy/Surface-v0", "Toy/Surface-v0 cannot be drawn: choose an environment"),
        ("ray_envs:Plain-v0", "ray_envs:Plain-v0 cannot be drawn: it needs the render mode rgb_array and has none"),
    ):
        folder = tmp_path / env_id.partition("-")[0].replace("/", "-")
        gdi.train(tiny_config(env_id, steps=40), folder)
        argv = ["evaluate", str(folder), "--video", str(tmp_path / "out.mp4")]
        assert message in error_line(argv, capsys)
        assert not (tmp_path / "out.mp4").exists()


# Environments with one picture per step.


@pytest.mark.parametrize(
    ("env_id", "size", "fps"), [("CartPole-v1", (608, 464), 50), ("MinAtar/Breakout-v0", (480, 544), 15)]
)
def test_a_video_of_any_environment_that_can_be_drawn(
    env_id: str, size: tuple[int, int], fps: int, tmp_path: Path
) -> None:
    """Two episodes, from a trained run: every step is shown, and the second episode is another one."""
    gdi.train(tiny_config(env_id, steps=80), tmp_path / "run")
    told = gdi.load(tmp_path / "run").record(tmp_path / "out.mp4", episodes=2, seed=1)
    meta, frames = read(tmp_path / "out.mp4")
    assert (meta["size"], meta["fps"]) == (size, fps)
    assert len(frames) == sum(1 + episode.length_steps for episode in told)
    env = make_unguarded(EnvConfig(id=env_id), 1, draws=True)
    assert isinstance(env, Drawable)
    first = env.reset(child_seed(1, "video"))
    screen = make_screen(EnvConfig(id=env_id), child_seed(1, "video"))
    np.testing.assert_array_equal(screen.reset().obs, first[0])
    picture = env.draw(0)
    wanted = draw(picture, 0, 0, caption(tuple((told[0].index or {}).values())))
    assert np.abs(frames[0].astype(int) - wanted).mean() < 4
    second = frames[1 + told[0].length_steps]
    assert np.abs(frames[0].astype(int) - second).max() > 20
    assert all(episode.score == episode.length_steps for episode in told) or env_id != "CartPole-v1"


def test_minatar_is_drawn_in_the_colors_of_its_channels() -> None:
    env = make_unguarded(EnvConfig(id="MinAtar/Breakout-v0"), 2)
    assert isinstance(env, Drawable)
    obs = env.reset(0)
    for i in range(2):
        picture = env.draw(i)
        assert picture.shape == (10, 10, 3)
        for row, column in np.ndindex(10, 10):
            on = np.flatnonzero(obs[i, row, column])
            wanted = minatar.COLORS[on[-1]] if len(on) else minatar.BACKGROUND
            np.testing.assert_array_equal(picture[row, column], wanted)
    assert len(np.unique(minatar.COLORS, axis=0)) == 10
