"""The Python API: ``train(config)`` and ``load(run_dir)``."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch

from gdi import policy
from gdi.config import (
    Config,
    config_from_json,
    config_to_json,
    differences,
    validate,
)
from gdi.controller import make_controller
from gdi.envs import make_env
from gdi.envs.atari_screen import seeded_screen
from gdi.envs.protocols import find_protocol
from gdi.errors import UserError
from gdi.evaluation import Evaluation, Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.evaluation.video import RecordedEpisode, check_recording, record
from gdi.index_space import make_index_space
from gdi.networks import AgentInput, FrameHistory, make_network
from gdi.placement import PlacementConfig, validate_placement
from gdi.report.console import Quiet
from gdi.report.runlog import METRICS, RunLog, read_metrics
from gdi.runtime.checkpoint import BEST, CheckpointStore
from gdi.runtime.events import Notices, Sink
from gdi.runtime.faults import PartLost, Stalled
from gdi.runtime.local import build
from gdi.runtime.lock import run_lock
from gdi.runtime.run import Run, System
from gdi.seeds import child_seed
from gdi.types import Array, Index

CONFIG, CHECKPOINTS = "config.json", "checkpoints"
# So often may a part be lost before there is another checkpoint.
FRUITLESS_SESSIONS = 3


class Watcher(Sink, Protocol):
    """A sink that is closed at the end."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to."""

    run_dir: Path
    steps: int
    frames: int
    updates: int
    seconds: float
    finished: bool  # false: stopped by a signal, and can be resumed
    evaluation: Evaluation | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_dir": str(self.run_dir),
            "steps": self.steps,
            "frames": self.frames,
            "updates": self.updates,
            "seconds": round(self.seconds, 3),
            "finished": self.finished,
            "evaluation": self.evaluation.to_dict() if self.evaluation else None,
        }


def default_run_dir(config: Config) -> Path:
    """``runs/CartPole-v1-gdi-i3-seed11-20260131-120000``: never one that exists."""
    stem = f"{config.env.id.replace('/', '-').replace(':', '-')}-{config.preset}-seed{config.seed}"
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    path = Path("runs") / f"{stem}-{stamp}"
    number = 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{stem}-{stamp}-{number}"
    return path


def read_config(run_dir: Path) -> Config:
    """The config that a run folder was made with."""
    if not run_dir.is_dir():
        raise UserError(f"there is no run folder {run_dir}.")
    try:
        text = (run_dir / CONFIG).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{run_dir} is not a run folder: it has no {CONFIG}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None
    try:
        return config_from_json(text)
    except (ValueError, TypeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None


def lost_its_checkpoints(run_dir: Path, config: Config) -> bool:
    """True if the run has no checkpoint and had one: its log has more than a run that was killed before its first.

    Such a run may have logged at the step of that checkpoint, which is written after the line, and nothing later.
    """
    folder = run_dir / CHECKPOINTS
    if any(folder.glob("step-*")):
        return False
    if not folder.is_dir() or (folder / BEST).exists():
        return True
    if not (run_dir / METRICS).exists():
        return False
    due = {line["steps"] for line in read_metrics(run_dir, "train")}
    return len({steps for steps in due if steps >= config.run.checkpoint_every_steps}) > 1 or bool(
        read_metrics(run_dir, "evaluation")
    )


def prepare_run_dir(run_dir: Path, config: Config, *, resume: bool) -> bool:
    """Make the run folder, or check that it may be continued; true if it is continued. Overwrites nothing."""
    try:
        taken = run_dir.is_dir() and any(run_dir.iterdir())
    except OSError as error:  # may not be looked into, or a name too long for the disk
        raise UserError(f"{run_dir} cannot be a run folder: {error.strerror}.") from None
    if run_dir.exists() and not run_dir.is_dir():
        raise UserError(f"{run_dir} is a file: give --run-dir a folder.")
    if taken:
        if not resume:
            raise UserError(f"{run_dir} is not empty: continue that run with --resume, or choose another --run-dir.")
        for name, old, new in differences(read_config(run_dir), config):
            raise UserError(
                f"cannot resume {run_dir}: {name} was {old!r} and is now {new!r}. A run keeps its config; start a new "
                "one in another --run-dir."
            )
        if lost_its_checkpoints(run_dir, config):
            raise UserError(
                f"the checkpoints of {run_dir} are gone, so it cannot be continued: start a new run in another "
                "--run-dir. Its logs are as they were."
            )
        return True
    try:
        (run_dir / CHECKPOINTS).mkdir(parents=True)
        part = run_dir / f".{CONFIG}.part"
        part.write_text(config_to_json(config), encoding="utf-8")
        part.rename(run_dir / CONFIG)
    except OSError as error:
        raise UserError(f"cannot write the run folder {run_dir}: {error.strerror}.") from None
    return False


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within it, SIGINT and SIGTERM ask the run to save and stop; a second one stops at once, as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # signals belong to the main thread; a caller's thread is stopped by its caller
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def train(
    config: Config,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    console: Watcher | None = None,
    runtime: Literal["local", "ray"] = "local",
    placement: PlacementConfig | None = None,
    ray_address: str = "",
) -> TrainResult:
    """Train an agent; ``run_dir`` keeps config, logs and checkpoints (by default a new folder under ``runs/``).

    With ``resume`` a run that was stopped continues from its newest whole checkpoint; a folder that is empty or missing
    simply starts. Same config, same machine: same run. ``runtime="ray"`` puts the parts on the Ray cluster at
    ``ray_address`` (by default one that is started on this machine) as ``placement`` says.
    """
    validate(config)
    folder = default_run_dir(config) if run_dir is None else Path(run_dir)
    if runtime not in ("local", "ray"):
        raise UserError(f"unknown runtime {runtime!r}: there are local and ray.")
    if runtime == "local" and (ray_address or placement not in (None, PlacementConfig())):
        raise UserError("ray_address and placement are for runtime='ray'.")
    with closing(console or Quiet()) as screen:
        watchers = Notices(screen)
        if runtime == "local":
            return _train(lambda: build(config), config, folder, resume, watchers, runtime)
        placement = validate_placement(placement or PlacementConfig(), config)
        from gdi.runtime.ray.cluster import cluster

        with cluster(ray_address, placement):
            from gdi.runtime.ray.system import RaySystem  # not before: it needs Ray
            from gdi.runtime.ray.wanted import Wanted

            wanted = Wanted(placement.actors, folder)

            def place() -> System:
                return RaySystem(config, placement, watchers.notice, wanted)

            return _train(place, config, folder, resume, watchers, runtime)


def _train(
    make: Callable[[], System], config: Config, folder: Path, resume: bool, watchers: Notices, runtime: str
) -> TrainResult:
    # Build first: an environment that cannot be trained on must leave no folder behind.
    try:
        system: System | None = make()
    except PartLost as error:
        raise Stalled("a part was lost before the run began", str(error)) from None
    try:
        continues = prepare_run_dir(folder, config, resume=resume)
        with run_lock(folder, runtime), closing(RunLog(folder)) as log, stop_on_signal() as stop:
            watchers.add(log)
            store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, watchers.notice)
            began, losses = -1, 0  # steps at which this session began, and how many before it ended without another
            while True:
                try:
                    system = system or make()
                    run = Run(system, log, watchers, store)
                    resumed = run.resume() if continues else False
                    if began < 0:
                        text = f"{start_text(config, folder, run.steps, resumed)}\n{system.text()}"
                        watchers.event({"kind": "start", "steps": run.steps, "text": text})
                    began, losses = run.steps, losses if run.steps == began else 0
                    evaluation = run.train(stop)
                    break
                except PartLost as error:
                    watchers.notice(
                        f"Going back to the newest checkpoint, for a part of the run is lost: {str(error)[:200]}"
                    )
                    losses += 1
                    if losses == FRUITLESS_SESSIONS:
                        raise Stalled(f"a part was lost {losses} times since one checkpoint", str(error)) from None
                if system is not None:
                    system.close()
                system, continues = None, True
        return TrainResult(folder, run.steps, run.frames, run.updates, run.seconds, run.finished, evaluation)
    finally:
        if system is not None:
            system.close()


def start_text(config: Config, folder: Path, steps: int, resumed: bool) -> str:
    verb = f"resuming at {steps:,} of" if resumed else "training for"
    return (
        f"GDI: {config.preset} at scale '{config.scale}' on {config.env.id}, {verb} {config.steps:,} steps, "
        f"seed {config.seed}, run folder {folder}"
    )


class Agent:
    """A trained agent that plays: ``reset()`` before each episode, then ``act(observation)`` at each step.

    It stacks frames itself: an observation is what one step of the environment gives, for Atari a gray [84, 84] frame.
    """

    def __init__(self, config: Config, state: dict[str, Any], seed: int = 0) -> None:
        env = make_env(config.env, 1)
        self.spec = env.spec
        env.close()
        self._history = FrameHistory(1, self.spec.frame_shape, self.spec.observation_dtype, self.spec.frame_stack)
        self.config = config = replace(config, run=replace(config.run, compile=False))  # playing is not worth it
        self.steps = int(state["system"]["steps"])
        self._params = {k: torch.as_tensor(v) for k, v in state["system"]["learner"]["network"].items()}
        self._network = make_network(config, self.spec.observation_shape, self.spec.num_actions, 0).eval()
        try:
            self._network.load_state_dict(self._params)
        except RuntimeError:
            raise UserError(
                f"the checkpoint's network is not the one that {CONFIG} describes: was {CONFIG} changed after training?"
            ) from None
        space = make_index_space(config.index_space)
        self._controllers = []
        for kept in state["system"]["controllers"].values():
            controller = make_controller(config.controller, space, np.random.default_rng(0))
            controller.load_state_dict(kept)
            self._controllers.append(controller)
        self._rng = np.random.default_rng(child_seed(seed, "agent-index"))
        self._generator = torch.Generator().manual_seed(child_seed(seed, "agent-actions"))
        self.reset()

    def _propose(self, env: int, rng: np.random.Generator) -> Index:
        return self._controllers[env % len(self._controllers)].propose_best(rng)

    def reset(self) -> None:
        """Begin an episode: a new λ from the controller, and an empty memory."""
        self.index = self._propose(int(self._rng.integers(len(self._controllers))), self._rng)
        self._state = self._network.initial_state(1)
        self._start = True
        self._action = 0

    def act(self, observation: Array, reward: float = 0.0) -> int:
        """The action for one observation. Recurrent agents also saw the previous reward in training: pass it."""
        shape = self.spec.frame_shape
        if np.size(observation) != math.prod(shape):
            raise UserError(f"this agent takes observations of shape {shape}, not {np.shape(observation)}.")
        frame = np.asarray(observation, self.spec.observation_dtype).reshape(1, *shape)
        obs = self._history.observe(frame, np.array([self._start]))
        with torch.inference_mode():
            output = self._network(
                AgentInput(
                    torch.from_numpy(obs).unsqueeze(0),
                    torch.tensor([[self._start]]),
                    torch.tensor([[self._action]]),
                    torch.tensor([[reward]], dtype=torch.float32),
                ),
                self._state,
            )
            self._state, self._start = output.state, False
            probabilities = policy.probs(output.advantage[0], torch.tensor([self.index]))
            self._action = int(policy.sample(probabilities, self._generator)[0])
        return self._action + self.spec.first_action

    def evaluate(self, episodes: int = 32, seed: int = 0, index: Index | None = None) -> Evaluation:
        """Play whole episodes in separate environments: with the controller's best λ, or all with λ = ``index``."""

        def propose(env: int, rng: np.random.Generator) -> Index:
            return self._propose(env, rng) if index is None else index

        evaluator = Evaluator(
            self.config.env,
            make_env(self.config.env, num_envs_for(episodes)),
            make_network(self.config, self.spec.observation_shape, self.spec.num_actions, 0),
        )
        try:
            evaluation = evaluator.evaluate(self._params, propose, episodes, child_seed(seed, "evaluate"))
            assert evaluation is not None  # nobody asked it to stop
            return evaluation
        finally:
            evaluator.close()

    def check_recording(self, path: str | Path) -> None:
        """UserError if ``record`` to this path cannot succeed; plays nothing."""
        check_recording(self.config.env.id, Path(path))

    def record(self, path: str | Path, episodes: int = 1, seed: int = 0) -> list[RecordedEpisode]:
        """Play Atari episodes into an mp4 video, which must not exist yet: every frame, in colour, with score and λ."""
        self.check_recording(path)
        env = self.config.env
        screen = seeded_screen(env.id, find_protocol(env.protocol), child_seed(seed, "video"), env.max_episode_steps)
        return record(Path(path), screen, self, episodes)


def load(run_dir: str | Path, *, best: bool = False, seed: int = 0, warn: Callable[[str], None] | None = None) -> Agent:
    """The agent of a run: its newest checkpoint, or (``best``) the one with the best evaluation."""
    folder = Path(run_dir)
    config = validate(read_config(folder))
    store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, warn or (lambda text: None))
    state = store.best() if best else store.newest()
    if state is None:
        raise UserError(f"{folder} has no checkpoint yet: let it train a little longer.")
    return Agent(config, state, seed)
