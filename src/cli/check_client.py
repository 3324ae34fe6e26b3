"""Prints what ElasticDL's client lacks in this Python, for a program that imports it. Reads the program and runs none of it.

    python -c CHECK -m MODULE        run in the program's directory
    python -c CHECK SCRIPT

Follows the imports of the program's own modules and of the client. Lines: "module NAME" for one that cannot be found, "package NAME" for
what pip installs it by, "generated FILE" for one that a build should have made. Optional imports (in functions, in a `try`) do not count, and a program
that changes sys.path is not judged.
"""

import ast
import os
import sys
from importlib.machinery import ModuleSpec

CLIENT = ("elasticai_api", "easydl")
PACKAGES = {"elasticai_api": ["elasticai_api", "packaging", "grpcio"], "easydl": ["elasticai_api"], "grpc": ["grpcio"], "google": ["protobuf"]}
HOOKS = "elasticai_api.tensorflow.hooks"  # a job's environment has it: sitecustomize.py


class ChangesPath(Exception):
    pass


def find(name):
    """The spec of a module, without running its packages as importlib.util.find_spec does."""
    path, spec, full = None, None, ""
    for part in name.split("."):
        if full and path is None:
            return None
        full = full + "." + part if full else part
        for finder in sys.meta_path:
            try:
                spec = finder.find_spec(full, path) if hasattr(finder, "find_spec") else None
            except KeyError:  # a folder without __init__.py in a package: Python looks for that among the loaded ones
                spec = ModuleSpec(full, None, is_package=True)
                spec.submodule_search_locations = [os.path.join(folder, part) for folder in path
                                                   if os.path.isdir(os.path.join(folder, part))]
            if spec:
                break
        else:
            return None
        path = spec.submodule_search_locations
    return spec


def statements(body):
    """Those that run whenever the module does."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            yield from statements(statement.body)
        if isinstance(statement, ast.With):
            yield from statements(statement.body)


def absolute(node, package):
    if not node.level:
        return node.module
    parts = package.split(".")
    return ".".join(parts[:len(parts) - node.level + 1] + ([node.module] if node.module else []))


class Check:
    def __init__(self, base):
        self.base = os.path.join(os.path.realpath(base), "")
        self.seen, self.missing, self.generated = set(), [], []

    def is_client(self, name):
        return name.split(".")[0] in CLIENT

    def module(self, name, importer):
        """One import, with the packages that it runs first. Returns the module's spec."""
        parts, spec = name.split("."), None
        for end in range(1, len(parts) + 1):
            full = ".".join(parts[:end])
            spec = find(full)
            if not spec:
                counts = self.is_client(full) or self.is_client(importer)
                if counts and full != HOOKS and full not in self.missing:
                    self.missing.append(full)
                return None
            origin = spec.origin or ""
            own = os.path.realpath(origin).startswith(self.base) and "-packages" + os.sep not in origin
            if full not in self.seen and origin.endswith(".py") and (own or self.is_client(full)):
                self.seen.add(full)
                self.file(origin, full, full if spec.submodule_search_locations is not None else full.rpartition(".")[0])
        return spec

    def file(self, path, name, package):
        with open(path, "rb") as file:
            text = file.read()
        if b"sys.path" in text and not self.is_client(name):
            raise ChangesPath()
        for node in statements(ast.parse(text).body):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self.module(each.name, name)
            elif isinstance(node, ast.ImportFrom):
                self.names(node, absolute(node, package), name)

    def names(self, node, source, importer):
        """`from source import ...`: the names may be modules."""
        spec = self.module(source, importer)
        if not spec or spec.submodule_search_locations is None:
            return
        for each in node.names:
            full = source + "." + each.name
            if find(full):
                self.module(full, importer)
            elif each.name.endswith(("_pb2", "_pb2_grpc")) and self.is_client(full) and not self.names_it(spec, each.name):
                self.generated.append(full.replace(".", "/") + ".py")

    def names_it(self, spec, name):
        if not spec.origin or not os.path.exists(spec.origin):
            return False
        with open(spec.origin) as file:
            return name in file.read()


def main():
    is_module = sys.argv[1] == "-m"
    base = os.getcwd() if is_module else os.path.dirname(os.path.abspath(sys.argv[1]))
    sys.path[0] = base
    check = Check(base)
    try:
        if is_module:
            check.module(sys.argv[2], "__main__")
        else:
            check.file(sys.argv[1], "__main__", "")
    except (ChangesPath, SyntaxError, OSError):
        return
    packages = []
    for name in check.missing:
        root = name.split(".")[0]
        print("module", name)
        for package in PACKAGES.get(root, [root]):
            if package not in packages and (package in ("elasticai_api", "grpcio", "protobuf") or not find(package)):
                packages.append(package)
    if "grpcio" in packages and find("grpc"):
        packages.remove("grpcio")
    for package in packages:
        print("package", package)
    for file in check.generated:
        print("generated", file)


main()
