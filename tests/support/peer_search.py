"""What our searchers find beside Optuna's, on functions whose minimum is known, and the test of ranks that compares them."""

import json
import math
import pathlib
import subprocess

import mixed_functions
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


def mixed_ours(algorithm, functions, function, seeds, budgets, bench=BENCH):
    """As `ours`, on a function of mixed_functions."""
    space, value_of = getattr(mixed_functions, functions)[function]
    rows = []
    for seed in range(seeds):
        with subprocess.Popen([bench, "ask", algorithm, "1", str(seed), str(max(budgets)), *map(mixed_functions.flag, space)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            values = []
            for line in process.stdout:
                values.append(value_of(json.loads(line)))
                process.stdin.write(f"{values[-1]!r}\n")
                process.stdin.flush()
        assert process.returncode == 0 and len(values) == max(budgets), (function, process.returncode, len(values))
        rows.append([min(values[:budget]) for budget in budgets])
    return rows


def mixed_optunas(python, algorithm, functions, function, seeds, budgets):
    return json.loads(subprocess.run([python, "-W", "ignore", ROOT / "bench/optuna_search.py", "mixed", algorithm, functions, function,
                                      str(seeds), *map(str, budgets)], capture_output=True, text=True, check=True).stdout)


def quartiles(values):
    values = sorted(values)
    at = [(len(values) - 1) * share for share in (0.25, 0.5, 0.75)]
    return [values[int(x)] + (values[math.ceil(x)] - values[int(x)]) * (x - int(x)) for x in at]


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


def compare_mixed(python, algorithm, seeds, budget, functions="HELD_OUT", names=None, bench=BENCH, peer=None):
    """A row for each function: name, quartiles of ours, of Optuna's and of random search, score of ranks beside Optuna and beside random.

    `peer` is Optuna's algorithm if it is not the same."""
    for name in names or getattr(mixed_functions, functions):
        mine = mixed_ours(algorithm, functions, name, seeds, (budget,), bench)
        theirs = mixed_optunas(python, peer or algorithm, functions, name, seeds, (budget,))
        chance = mixed_ours("random", functions, name, seeds, (budget,), bench)
        mine, theirs, chance = ([round(run[0], 6) for run in runs] for runs in (mine, theirs, chance))
        yield name, quartiles(mine), quartiles(theirs), quartiles(chance), rank_score(mine, theirs), rank_score(mine, chance)


def curves(algorithm, pruning, seeds, bench=BENCH):
    """Regrets of the curve task at a budget of steps."""
    return json.loads(subprocess.run([bench, "curves", algorithm, pruning, str(seeds)], capture_output=True, text=True,
                                     check=True).stdout)
