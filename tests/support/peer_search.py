"""What our searchers find beside Optuna's, on functions whose minimum is known, and the test of ranks that compares them."""

import json
import math
import pathlib
import subprocess

from yard import ROOT

BENCH = ROOT / "build/release/bench/sweep_bench"
FUNCTIONS = ("branin", "hartmann6")
# One-sided, at one per cent: beyond it ours is worse.
WORSE = 2.33


def ours(algorithm, function, seeds, budgets, bench=BENCH, window=1):
    """For each seed the best value after each budget; a suggestion knows the results of trials that are `window` back."""
    return json.loads(subprocess.run([bench, "search", algorithm, function, str(window), str(seeds), *map(str, budgets)],
                                     capture_output=True, text=True, check=True).stdout)


def optunas(python, algorithm, function, seeds, budgets, window=1):
    return json.loads(subprocess.run([python, "-W", "ignore", ROOT / "bench/optuna_search.py", "search", algorithm, function,
                                      str(window), str(seeds), *map(str, budgets)],
                                     capture_output=True, text=True, check=True).stdout)


def rank_score(mine, others):
    """Mann and Whitney's U as a normal score: above 0 when mine are greater, which is worse."""
    wins = sum((a > b) + 0.5 * (a == b) for a in mine for b in others)
    n, m = len(mine), len(others)
    # Ties, as where both have found the minimum to the last digit, make the spread smaller.
    counts = {}
    for value in [*mine, *others]:
        counts[value] = counts.get(value, 0) + 1
    ties = sum(count ** 3 - count for count in counts.values()) / ((n + m) * (n + m - 1))
    spread = math.sqrt(n * m / 12 * (n + m + 1 - ties))
    return (wins - n * m / 2) / spread if spread else 0.0


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def compare(python, algorithm, seeds, budgets, bench=BENCH, window=1):
    """A row for each function and budget: name, median of ours and of Optuna's, score of ranks."""
    rows = []
    for function in FUNCTIONS:
        mine = ours(algorithm, function, seeds, budgets, bench, window)
        theirs = optunas(python, algorithm, function, seeds, budgets, window)
        for i, budget in enumerate(budgets):
            # The last digits are of the minimum itself: nobody is better for them.
            a, b = ([round(run[i], 6) for run in runs] for runs in (mine, theirs))
            rows.append((f"{function} after {budget}", median(a), median(b), rank_score(a, b)))
    return rows


def curves(algorithm, pruning, seeds, bench=BENCH):
    """Regrets of the curve task at a budget of steps."""
    return json.loads(subprocess.run([bench, "curves", algorithm, pruning, str(seeds)], capture_output=True, text=True,
                                     check=True).stdout)
