#!/usr/bin/env python3
"""Sweeps beside Optuna, in one run: how long a suggestion takes, and what a search finds.

    bench/sweeps.py build/release/bench/sweep_bench PYTHON_WITH_OPTUNA [PYTHON_WITH_TORCH_TOO] [--seeds 20] [--windows] [--mixed [--check]]

With --mixed only the table of mixed spaces, on functions that no constant was chosen on; --check exits 1 if ours is worse on any of them.
With --windows only what TPE finds when results come late, as they do with several trials at a time.
Times are of one suggestion for 6 numbers with 200 trials seen, in memory on both sides, the best of three rounds that take turns.
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from peer_search import WORSE, compare, compare_mixed, curves  # noqa: E402

SEEN = 200


def micros(command):
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def times(bench, python, algorithm):
    rounds = [(micros([bench, "time", algorithm, str(SEEN)]),
               micros([python, "-W", "ignore", ROOT / "bench/optuna_search.py", "time", algorithm, str(SEEN)])) for _ in range(3)]
    mine, theirs = (min(column) for column in zip(*rounds))
    print(f"{algorithm} suggestion: ours {mine:,.0f} us, Optuna {theirs:,.0f} us: {theirs / mine:.0f}x faster")


def found(bench, python, algorithm, seeds, budgets):
    for name, mine, theirs, score in compare(python, algorithm, seeds, budgets, bench):
        print(f"{algorithm} {name}: ours {mine:.5f}, Optuna {theirs:.5f} (medians of {seeds}; ranks {score:+.2f}, worse beyond +2.33)")


def windows(bench, python, seeds):
    for window in (1, 2, 4, 8):
        for name, mine, theirs, score in compare(python, "tpe", seeds, (50, 100, 200), bench, window):
            print(f"tpe, window {window}, {name}: ours {mine:.5f}, Optuna {theirs:.5f} (ranks {score:+.2f})", flush=True)


def mixed(bench, python, algorithm, seeds, budget, peer=None):
    """Best values after so many trials as median (quartiles). Returns how many functions ours is worse on."""
    print(f"\n{algorithm} on mixed spaces{f', beside {peer} of Optuna' if peer else ''}, best after {budget} trials, median (quartiles) of {seeds} seeds; the score of ranks is "
          f"below 0 where ours is better, and worse beyond +{WORSE}\n")
    print("| function | ours | Optuna | random | score |\n| --- | --- | --- | --- | --- |", flush=True)
    worse = 0
    for name, *columns, score, _ in compare_mixed(python, algorithm, seeds, budget, bench=bench, peer=peer):
        print(f"| {name} | " + " | ".join(f"{q[1]:.4f} ({q[0]:.4f}, {q[2]:.4f})" for q in columns) + f" | {score:+.2f} |", flush=True)
        worse += score >= WORSE
    return worse


parser = argparse.ArgumentParser()
parser.add_argument("bench")
parser.add_argument("optuna")
parser.add_argument("optuna_gp", nargs="?")
parser.add_argument("--seeds", type=int, default=20)
parser.add_argument("--windows", action="store_true")
parser.add_argument("--mixed", action="store_true")
parser.add_argument("--check", action="store_true")
options = parser.parse_args()

def all_mixed():
    """Without torch Optuna has no Gaussian process: ours is compared with its TPE then."""
    worse = mixed(options.bench, options.optuna, "tpe", options.seeds, 100)
    return worse + mixed(options.bench, options.optuna_gp or options.optuna, "gp", options.seeds, 50, None if options.optuna_gp else "tpe")


if options.mixed:
    worse = all_mixed()
    sys.exit(1 if options.check and worse else 0)
if options.windows:
    windows(options.bench, options.optuna, options.seeds)
    sys.exit()
times(options.bench, options.optuna, "tpe")
found(options.bench, options.optuna, "tpe", options.seeds, (50, 100, 200))
if options.optuna_gp:
    times(options.bench, options.optuna_gp, "gp")
    found(options.bench, options.optuna_gp, "gp", options.seeds, (50, 100))
worse = all_mixed()
regrets = {(a, p): sum(curves(a, p, 20, options.bench)) / 20 for a, p in
           (("random", "none"), ("random", "asha"), ("random", "median"), ("tpe", "none"), ("tpe", "asha"))}
for (algorithm, pruning), regret in regrets.items():
    print(f"curves {algorithm} + {pruning}: regret {regret:.3f}, {regret / regrets['random', 'none']:.2f} of random search")
sys.exit(1 if options.check and worse else 0)
