"""Optuna on known functions: the other half of bench/sweep_bench.cc. Run by a Python that has Optuna.

    optuna_search.py search tpe|gp FUNCTION WINDOW SEEDS BUDGET...   best value after each budget, each seed
    optuna_search.py mixed tpe|gp|random SET FUNCTION SEEDS BUDGET...   the same on a function of tests/support/mixed_functions.py
    optuna_search.py time tpe|gp SEEN                                microseconds a suggestion, 6 numbers

A suggestion knows the results of trials that are WINDOW back, as with so many jobs that take turns. Of those in between TPE knows where they
look (constant_liar, which 5.0 does by itself).
"""

import json
import math
import pathlib
import sys
import time

import optuna

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/support"))

import mixed_functions  # noqa: E402

A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650],
     [4047, 8828, 8732, 5743, 1091, 381]]
ALPHA = [1, 1.2, 3, 3.2]


def hartmann6(x):
    return -sum(ALPHA[i] * math.exp(-sum(A[i][j] * (x[j] - P[i][j] * 1e-4) ** 2 for j in range(6))) for i in range(4))


def branin(x):
    a = x[1] - 5.1 / (4 * math.pi ** 2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return a ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


FUNCTIONS = {"branin": ([(-5, 10), (0, 15)], branin), "hartmann6": ([(0, 1)] * 6, hartmann6)}
SAMPLERS = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}


def ask(study, bounds):
    trial = study.ask()
    return trial, [trial.suggest_float(f"x{i}", low, high) for i, (low, high) in enumerate(bounds)]


def search(algorithm, function, window, seeds, budgets):
    bounds, value_of = FUNCTIONS[function]
    rows = []
    for seed in range(seeds):
        study = optuna.create_study(sampler=SAMPLERS[algorithm](seed=seed))
        best, row, running = math.inf, [], []
        for n in range(1, max(budgets) + 1):
            trial, x = ask(study, bounds)
            value = value_of(x)
            running.append((trial, value))
            if len(running) == window:
                study.tell(*running.pop(0))
            best = min(best, value)
            if n in budgets:
                row.append(best)
        rows.append(row)
    return rows


def suggested(trial, name, kind, *rest):
    if kind == "choice":
        return trial.suggest_categorical(name, rest[0])
    return (trial.suggest_int if kind == "int" else trial.suggest_float)(name, rest[0], rest[1], log="log" in rest)


def suggest_all(trial, space):
    """Define by run: a conditional parameter is suggested only where it exists."""
    values = {}
    for parameter in space:
        if mixed_functions.is_active(parameter, values):
            values[parameter[0]] = suggested(trial, *parameter)
    return values


def mixed(algorithm, functions, function, seeds, budgets):
    space, value_of = getattr(mixed_functions, functions)[function]
    rows = []
    for seed in range(seeds):
        study = optuna.create_study(sampler=SAMPLERS[algorithm](seed=seed))
        study.optimize(lambda trial: value_of(suggest_all(trial, space)), n_trials=max(budgets))
        values = [trial.value for trial in study.trials]
        rows.append([min(values[:budget]) for budget in budgets])
    return rows


def seconds(algorithm, seen, repeats=20):
    """Of a suggestion once so many trials were seen; those before them are drawn by chance, which is no matter here."""
    bounds, value_of = FUNCTIONS["hartmann6"]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(seen):
        trial, x = ask(study, bounds)
        study.tell(trial, value_of(x))
    study.sampler = SAMPLERS[algorithm](seed=1)
    spent = 0.0
    for _ in range(repeats):
        begin = time.perf_counter()
        trial, x = ask(study, bounds)
        spent += time.perf_counter() - begin
        study.tell(trial, value_of(x))
    return spent / repeats


optuna.logging.set_verbosity(optuna.logging.ERROR)
what, algorithm, *rest = sys.argv[1:]
if what == "search":
    print(json.dumps(search(algorithm, rest[0], *map(int, rest[1:3]), [int(budget) for budget in rest[3:]])))
elif what == "mixed":
    print(json.dumps(mixed(algorithm, rest[0], rest[1], int(rest[2]), [int(budget) for budget in rest[3:]])))
else:
    print(seconds(algorithm, int(rest[0])) * 1e6)
