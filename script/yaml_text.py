"""Plain values (dict, list, text, numbers, flags) as YAML that reads well: small things on one line."""

import json
import re

PLAIN = re.compile(r"[A-Za-z./_][\w./-]*(\.\w+)*$")
AMBIGUOUS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"}


def scalar(value):
    if isinstance(value, str) and PLAIN.match(value) and value.lower() not in AMBIGUOUS:
        return value
    return json.dumps(value, ensure_ascii=False)


def is_leaf(value):
    """What stands on one line: a scalar, a list of them, a small schema without anything below."""
    if isinstance(value, dict):
        return all(not isinstance(v, (dict, list)) for v in value.values()) and len(value) <= 5
    return not isinstance(value, list) or all(not isinstance(v, (dict, list)) for v in value)


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {scalar(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(scalar, value)) + "]"
    return scalar(value)


def lines_of(value, indent=""):
    if isinstance(value, dict):
        for key, member in value.items():
            if is_leaf(member) and len(flow(member)) < 100 or not isinstance(member, (dict, list)):
                yield f"{indent}{key}: {flow(member)}"
            else:
                yield f"{indent}{key}:"
                yield from lines_of(member, indent + ("" if isinstance(member, list) else "  "))
    else:
        for item in value:
            first, *rest = lines_of(item, indent + "  ") if isinstance(item, dict) else [indent + "  " + scalar(item)]
            yield f"{indent}- {first[len(indent) + 2:]}"
            yield from rest


def yaml_text(value):
    return "\n".join(lines_of(value)) + "\n"
