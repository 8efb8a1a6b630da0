"""A run's learning curve as CSV and PNG, made from its run folder for docs/results.

    python benchmarks/curves.py RUN_DIR OUT_STEM

writes OUT_STEM.csv, with one row per log line of training and per evaluation, and OUT_STEM.png.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from gdi.runtime.folder import read_config
from gdi.runtime.run_log import read_metrics
from gdi.scores.games import GAMES, find_game
from gdi.scores.reference import load_reference

COLUMNS = ("kind", "steps", "frames", "seconds", "return", "evaluation_min", "evaluation_max", "entropy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("out_stem", type=Path)
    args = parser.parse_args()
    config = read_config(args.run_dir)
    training = [line for line in read_metrics(args.run_dir, "train") if "episode/return" in line]
    evaluations = read_metrics(args.run_dir, "evaluation")
    with args.out_stem.with_name(args.out_stem.name + ".csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for line in sorted([*training, *evaluations], key=lambda line: line["steps"]):
            common = (line["kind"], line["steps"], line["frames"], round(line["clock"]["seconds"], 1))
            if line["kind"] == "train":
                rest = (round(line["episode/return"], 4), "", "", round(line.get("policy/entropy", float("nan")), 4))
            else:
                rest = (line["mean"], line["min"], line["max"], "")
            writer.writerow((*common, *rest))

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    million = 1e6
    axes.plot(
        [line["steps"] / million for line in training],
        [line["episode/return"] for line in training],
        color="#9db4d3",
        label="training episodes, any λ",
    )
    axes.errorbar(
        [line["steps"] / million for line in evaluations],
        [line["mean"] for line in evaluations],
        yerr=[line["std"] for line in evaluations],
        fmt="o-",
        color="#1f4e8c",
        capsize=3,
        label=f"evaluation, {config.evaluation.episodes} episodes (mean, std)",
    )
    game = find_game(config.env.id) if config.env.protocol else None
    if game is not None:
        human = float(load_reference("paper").human[GAMES.index(game)])
        axes.axhline(human, color="#b5651d", linestyle="--", linewidth=1, label=f"human ({human:g})")
    axes.set_xlabel("steps, millions")
    axes.set_ylabel("return")
    axes.set_title(f"{config.env.id}, {config.preset}, scale {config.scale}, seed {config.seed}")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(args.out_stem.with_name(args.out_stem.name + ".png"), dpi=130)


if __name__ == "__main__":
    main()
