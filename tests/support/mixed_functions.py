"""Functions over spaces that mix floats, integers and categories, each with its minimum at 0 or known.

TRAINING is what the searchers' constants were chosen on. HELD_OUT is what the comparison with Optuna uses: no constant may be changed by its
results. A space is a list of (name, kind, ...): ("float"|"int", low, high[, "log"]) or ("choice", values). A last element {parent: values} makes
a parameter conditional: it exists only where each parent has one of those values. Parents come first.
"""

import math
import random


def log(x):
    return math.log10(x)


def table(seed, *sizes):
    """Numbers in [0, 1], the same for a seed."""
    chance = random.Random(seed)
    if len(sizes) == 1:
        return [chance.random() for _ in range(sizes[0])]
    return [table(chance.random(), *sizes[1:]) for _ in range(sizes[0])]


# -- training

def kernel(p):
    k = p["kernel"]
    c, g = log(p["c"]), log(p["gamma"])
    if k == "rbf":
        return 0.1 * (c - 1) ** 2 + 0.15 * (g + 2) ** 2
    if k == "poly":
        return 0.2 + 0.1 * c ** 2 + 0.1 * abs(p["degree"] - 3) + 0.05 * (g + 1) ** 2
    return (0.5 if k == "linear" else 0.7) + 0.05 * (c + 1) ** 2


def bowl(p):
    return (sum((p[f"x{i}"] - 0.37 * i) ** 2 for i in range(3)) + sum(0.02 * (p[f"n{i}"] - 4 - 7 * i) ** 2 for i in range(2))
            + 0.4 * (p["a"] != "v2") + 0.3 * (p["b"] != "w1"))


def styblinski(p):
    offset = {"s": 0, "t": 0.5, "u": -0.7, "v": 1.5}[p["shift"]]
    xs = [p["x"] + offset, p["y"], p["n"] / 2, p["m"] / 2]
    return sum(x ** 4 - 16 * x ** 2 + 5 * x for x in xs) / 8 + 39.16617 * 4 / 4


TABLE = table(7, 5, 5)
PAIRS = table(8, 5, 5)


def tables(p):
    v = [int(p[f"c{i}"][1]) for i in range(5)]
    return sum(TABLE[i][v[i]] for i in range(5)) + 0.5 * sum(PAIRS[v[i]][v[(i + 1) % 5]] for i in range(5))


def griewank(p):
    xs = [p["x"], p["y"], 4 * math.log2(p["n"]) - 20, 3 * (p["m"] - 11)]
    sum_ = sum(x * x for x in xs) / 400
    return sum_ - math.prod(math.cos(x / math.sqrt(i + 1)) for i, x in enumerate(xs)) + 1 + {"a": 0.2, "b": 0, "c": 0.4, "d": 0.9, "e": 0.5}[p["o"]]


def levy(p):
    scale = {"one": 1, "two": 1.6, "three": 0.6}[p["scale"]]
    w = [1 + scale * (p["x"] - 1) / 4, 1 + (p["n"] - 3) / 4, 1 + (math.log2(p["m"]) - 5) / 4]
    return (math.sin(math.pi * w[0]) ** 2 + sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:2])
            + (w[2] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[2]) ** 2) + 0.2 * abs(scale - 1.6))


def booster(p):
    if p["booster"] == "linear":
        return 0.25 + 0.06 * (log(p["lr"]) + 1) ** 2 + 0.05 * (log(p["l2"]) - 0.5) ** 2
    drop = 0.4 * (p["drop"] - 0.2) ** 2 - 0.08 if p["booster"] == "dart" else 0
    return 0.1 + 0.1 * (log(p["lr"]) + 1.5) ** 2 + 0.03 * abs(p["depth"] - 6) + drop


def chain(p):
    if p["model"] == "a":
        return 0.3 + (p["x"] - 0.2) ** 2
    if p["kind"] == "plain":
        return 0.2 + 2 * (p["x"] - 0.8) ** 2 + (p["s"] - 0.5) ** 2
    return 2 * (p["x"] - 0.8) ** 2 + (p["s"] - p["x"] + 0.3) ** 2 + 0.01 * (p["n"] - 7) ** 2


TRAINING = {
    "kernel": ([("c", "float", 1e-3, 1e3, "log"), ("gamma", "float", 1e-5, 10, "log"), ("kernel", "choice", ["linear", "poly", "rbf", "sigmoid"]),
                ("degree", "int", 2, 6)], kernel),
    "bowl": ([("x0", "float", -1, 1), ("x1", "float", -1, 1), ("x2", "float", -1, 1), ("n0", "int", 0, 15), ("n1", "int", 0, 15),
              ("a", "choice", ["v1", "v2", "v3", "v4"]), ("b", "choice", ["w1", "w2", "w3"])], bowl),
    "styblinski": ([("x", "float", -5, 5), ("y", "float", -5, 5), ("n", "int", -10, 10), ("m", "int", -10, 10),
                    ("shift", "choice", ["s", "t", "u", "v"])], styblinski),
    "tables": ([(f"c{i}", "choice", ["v0", "v1", "v2", "v3", "v4"]) for i in range(5)], tables),
    "griewank": ([("x", "float", -20, 20), ("y", "float", -20, 20), ("n", "int", 1, 1024, "log"), ("m", "int", 1, 20),
                  ("o", "choice", ["a", "b", "c", "d", "e"])], griewank),
    "levy": ([("x", "float", -6, 6), ("n", "int", -6, 10), ("m", "int", 1, 512, "log"), ("scale", "choice", ["one", "two", "three"])], levy),
    "booster": ([("booster", "choice", ["linear", "tree", "dart"]), ("lr", "float", 1e-4, 1, "log"), ("l2", "float", 1e-3, 1e3, "log", {"booster": ["linear"]}),
                 ("depth", "int", 1, 16, {"booster": ["tree", "dart"]}), ("drop", "float", 0, 1, {"booster": ["dart"]})], booster),
    "chain": ([("x", "float", 0, 1), ("model", "choice", ["a", "b"]), ("kind", "choice", ["plain", "rich"], {"model": ["b"]}),
               ("s", "float", 0, 1, {"model": ["b"]}), ("n", "int", 1, 12, {"kind": ["rich"]})], chain),
}


# -- held out

def network(p):
    best = {"adam": -3, "sgd": -1, "rmsprop": -3.5, "adagrad": -1.7}[p["optimizer"]]
    off = {"adam": 0, "sgd": 0.05, "rmsprop": 0.03, "adagrad": 0.15}[p["optimizer"]] + {"relu": 0.02, "tanh": 0.08, "elu": 0}[p["activation"]]
    return 0.12 * (log(p["lr"]) - best) ** 2 + 0.02 * (math.log2(p["units"]) - 6.5) ** 2 + 0.05 * abs(p["layers"] - 3) + off


def ackley(p):
    xs = [p["x"] - 0.7, p["y"] + 1.3, p["z"] - 2.1, p["n"] - 2, p["m"] + 3]
    return (-20 * math.exp(-0.2 * math.sqrt(sum(x * x for x in xs) / 5)) - math.exp(sum(math.cos(2 * math.pi * x) for x in xs) / 5)
            + 20 + math.e + {"a": 1.5, "b": 0.8, "c": 0}[p["c"]])


def branin(x, y):
    a = y - 5.1 / (4 * math.pi ** 2) * x ** 2 + 5 / math.pi * x - 6
    return a ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def branins(p):
    dx, dy, up = {"a": (0, 0, 4), "b": (2, -1, 2), "c": (-1, 2, 0), "d": (1, 1, 6), "e": (3, 3, 1)}[p["where"]]
    return branin(p["x"] + dx, p["y"] + dy) - 0.397887 + up + 0.3 * (p["n"] - 6) ** 2


def forest(p):
    rich = {"gini": 0.0, "entropy": 0.02, "log": 0.05}[p["criterion"]]
    best_depth = 12 if p["bootstrap"] == "yes" else 7
    return (0.08 * abs(math.log2(p["depth"] / best_depth)) + 0.3 / math.sqrt(p["trees"]) - 0.3 / math.sqrt(400)
            + 0.5 * (p["features"] - 0.45) ** 2 + rich + (0.03 if p["bootstrap"] == "no" else 0) + 0.01 * abs(p["leaf"] - 3))


def rosenbrock(p):
    xs = [p["x"], p["n"] / 4, p["y"], p["m"] / 4]
    if p["turned"] == "yes":
        xs = xs[::-1]
    return math.log1p(sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(xs, xs[1:]))) + (0.5 if p["turned"] == "yes" else 0)


ROWS = table(21, 4, 6)
JOINT = table(22, 6, 6)


def choices(p):
    v = [int(p[f"k{i}"][1]) for i in range(4)]
    waves = sum(x * x + 0.5 * (1 - math.cos(6 * x)) for x in (p["x"] - 0.4, p["y"] + 0.6))
    return sum(ROWS[i][v[i]] for i in range(4)) + JOINT[v[0]][v[1]] + JOINT[v[2]][v[3]] + waves


A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650],
     [4047, 8828, 8732, 5743, 1091, 381]]
PERMUTED = [3, 0, 5, 1, 6, 2, 7, 4]


def hartmann(p):
    xs = [p["x"], p["y"], p["z"], p["n"] / 20, p["m"] / 20, PERMUTED[int(p["level"][1])] / 7]
    return 3.32237 - sum(a * math.exp(-sum(A[i][j] * (xs[j] - P[i][j] * 1e-4) ** 2 for j in range(6)))
                         for i, a in enumerate((1, 1.2, 3, 3.2)))


def optimizers(p):
    lr = log(p["lr"])
    if p["optimizer"] == "sgd":
        # A greater momentum wants a smaller rate.
        return 0.02 + 0.15 * (lr + 1 + 2 * p["momentum"]) ** 2 + 0.5 * (p["momentum"] - 0.9) ** 2 + 0.01 * (p["layers"] - 4) ** 2
    off = 0.05 if p["optimizer"] == "adam" else 0.0
    decay = 0.05 * (log(p["decay"]) + 2.5) ** 2 if p["optimizer"] == "adamw" else 0
    return off + 0.15 * (lr + 3) ** 2 + 2 * (p["beta"] - 0.92) ** 2 + decay + 0.01 * (p["layers"] - 4) ** 2


def classifiers(p):
    if p["model"] == "svm":
        c = log(p["c"])
        if p["kernel"] == "rbf":
            return 0.1 + 0.05 * (c - 1) ** 2 + 0.08 * (log(p["gamma"]) + 2) ** 2
        return (0.2 if p["kernel"] == "linear" else 0.3) + 0.05 * c ** 2
    if p["model"] == "forest":
        return 0.12 + 0.05 * abs(math.log2(p["depth"] / 11)) + 0.3 / math.sqrt(p["trees"]) + 0.3 * (p["features"] - 0.3) ** 2
    return 0.1 + 0.02 * abs(math.log2(p["neighbors"] / 9)) + {"uniform": 0.05, "distance": 0}[p["weights"]] + 0.02 * (p["power"] - 1.5) ** 2


def stack(p):
    """As many sizes as there are layers; those beyond do not exist."""
    count = p["layers"]
    sizes = [math.log2(p[f"units{i}"]) for i in range(1, count + 1)]
    wanted = [7, 6, 5, 4]
    return (0.1 * abs(count - 3) + sum(0.03 * (size - wanted[i]) ** 2 for i, size in enumerate(sizes)) + 0.1 * (log(p["lr"]) + 2.5) ** 2
            + (0.3 * (p["rate"] - 0.3) ** 2 - 0.03 if p["dropout"] == "yes" else 0) + 0.03)


HELD_OUT = {
    "network": ([("lr", "float", 1e-5, 1, "log"), ("units", "int", 8, 512, "log"), ("layers", "int", 1, 6),
                 ("optimizer", "choice", ["sgd", "adagrad", "rmsprop", "adam"]), ("activation", "choice", ["relu", "tanh", "elu"])], network),
    "ackley": ([("x", "float", -5, 5), ("y", "float", -5, 5), ("z", "float", -5, 5), ("n", "int", -5, 5), ("m", "int", -5, 5),
                ("c", "choice", ["a", "b", "c"])], ackley),
    "branins": ([("x", "float", -5, 10), ("y", "float", 0, 15), ("n", "int", 1, 12), ("where", "choice", ["a", "b", "c", "d", "e"])], branins),
    "forest": ([("depth", "int", 2, 32, "log"), ("trees", "int", 10, 400), ("features", "float", 0.1, 1), ("leaf", "int", 1, 20),
                ("criterion", "choice", ["gini", "entropy", "log"]), ("bootstrap", "choice", ["yes", "no"])], forest),
    "rosenbrock": ([("x", "float", -2, 2), ("n", "int", -8, 8), ("y", "float", -2, 2), ("m", "int", -8, 8), ("turned", "choice", ["no", "yes"])],
                   rosenbrock),
    "choices": ([*((f"k{i}", "choice", ["v0", "v1", "v2", "v3", "v4", "v5"]) for i in range(4)), ("x", "float", -2, 2), ("y", "float", -2, 2)],
                choices),
    "hartmann-levels": ([("x", "float", 0, 1), ("y", "float", 0, 1), ("z", "float", 0, 1), ("n", "int", 0, 20), ("m", "int", 0, 20),
                         ("level", "choice", [f"l{i}" for i in range(8)])], hartmann),
    "optimizers": ([("lr", "float", 1e-5, 1, "log"), ("layers", "int", 1, 8), ("optimizer", "choice", ["sgd", "adam", "adamw"]),
                    ("momentum", "float", 0, 0.99, {"optimizer": ["sgd"]}), ("beta", "float", 0.5, 0.999, {"optimizer": ["adam", "adamw"]}),
                    ("decay", "float", 1e-5, 1, "log", {"optimizer": ["adamw"]})], optimizers),
    "classifiers": ([("model", "choice", ["svm", "forest", "neighbors"]), ("c", "float", 1e-3, 1e3, "log", {"model": ["svm"]}),
                     ("kernel", "choice", ["linear", "poly", "rbf"], {"model": ["svm"]}), ("gamma", "float", 1e-5, 10, "log", {"kernel": ["rbf"]}),
                     ("depth", "int", 2, 64, "log", {"model": ["forest"]}), ("trees", "int", 10, 300, {"model": ["forest"]}),
                     ("features", "float", 0.1, 1, {"model": ["forest"]}), ("neighbors", "int", 1, 50, "log", {"model": ["neighbors"]}),
                     ("weights", "choice", ["uniform", "distance"], {"model": ["neighbors"]}), ("power", "float", 1, 4, {"model": ["neighbors"]})],
                    classifiers),
    "stack": ([("lr", "float", 1e-5, 1, "log"), ("layers", "int", 1, 4), ("units1", "int", 4, 512, "log"),
               *((f"units{i}", "int", 4, 512, "log", {"layers": list(range(i, 5))}) for i in range(2, 5)),
               ("dropout", "choice", ["no", "yes"]), ("rate", "float", 0, 0.9, {"dropout": ["yes"]})], stack),
}


def condition_of(parameter):
    """{parent: values}, empty for a parameter that always exists."""
    return parameter[-1] if isinstance(parameter[-1], dict) else {}


def is_active(parameter, values):
    """Whether a parameter exists beside the values of those before it."""
    return all(values.get(parent) in allowed for parent, allowed in condition_of(parameter).items())


def flag(parameter):
    """As --param says it."""
    name, kind, *rest = parameter
    when = " and ".join(f"{parent}={','.join(map(str, values))}" for parent, values in condition_of(parameter).items())
    values = ",".join(rest[0]) if kind == "choice" else f"{'log:' if 'log' in rest else ''}{kind}:{rest[0]}..{rest[1]}"
    return f"{name}={values}" + (f" when {when}" if when else "")
