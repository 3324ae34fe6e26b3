"""Our searchers beside live Optuna 5.0.0, without lag: not worse by a test of ranks. SOAK=1 has the full counts."""

import os

import pytest

from peer_search import WORSE, compare, compare_mixed, curves

SOAK = os.environ.get("SOAK") == "1"
OPTUNA = os.environ.get("TRAINYARD_TEST_OPTUNA")
OPTUNA_GP = os.environ.get("TRAINYARD_TEST_OPTUNA_GP")


def check(python, algorithm, seeds, budgets):
    rows = compare(python, algorithm, seeds, budgets)
    for name, mine, theirs, score in rows:
        print(f"{algorithm} {name}, {seeds} seeds: {mine:.4f}, Optuna {theirs:.4f}, ranks {score:+.2f}")
    assert all(score < WORSE for *_, score in rows), rows


@pytest.mark.skipif(not OPTUNA, reason="TRAINYARD_TEST_OPTUNA is not set: script/test sets it")
def test_tpe_is_not_worse_than_optunas():
    check(OPTUNA, "tpe", 100 if SOAK else 10, (50, 100, 200))


def check_mixed(python, algorithm, seeds, budget, names=None):
    rows = list(compare_mixed(python, algorithm, seeds, budget, names=names))
    for name, mine, theirs, chance, score, beside_chance in rows:
        print(f"{algorithm} {name}, {seeds} seeds: {mine[1]:.4f}, Optuna {theirs[1]:.4f} ({score:+.2f}), random {chance[1]:.4f} ({beside_chance:+.2f})")
    assert all(score < WORSE for *_, score, _ in rows), rows
    # Better than random search, one-sided at five per cent.
    assert all(beside_chance < -1.64 for *_, beside_chance in rows), rows


@pytest.mark.skipif(not OPTUNA, reason="TRAINYARD_TEST_OPTUNA is not set: script/test sets it")
def test_tpe_is_not_worse_than_optunas_on_mixed_spaces():
    check_mixed(OPTUNA, "tpe", 20 if SOAK else 10, 100, None if SOAK else ("network", "forest", "optimizers"))


@pytest.mark.skipif(not OPTUNA_GP, reason="Optuna's Gaussian process needs torch: script/soak has it")
def test_the_gaussian_process_is_not_worse_than_optunas_on_mixed_spaces():
    check_mixed(OPTUNA_GP, "gp", 20, 50)


@pytest.mark.skipif(not OPTUNA_GP, reason="Optuna's Gaussian process needs torch: script/soak has it")
def test_the_gaussian_process_is_not_worse_than_optunas():
    check(OPTUNA_GP, "gp", 20, (50, 100))


def test_asha_halves_the_regret_of_random_search_at_equal_budget():
    seeds = 100 if SOAK else 20
    regret = {pruning: sum(curves("random", pruning, seeds)) / seeds for pruning in ("none", "asha")}
    print(f"asha regret {regret['asha']:.3f}, random search {regret['none']:.3f}")
    assert regret["asha"] <= 0.5 * regret["none"]
