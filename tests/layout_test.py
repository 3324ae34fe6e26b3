"""Rules of the layout that the compiler does not see."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SRC = ROOT / "src"

# A third-party header is seen by one folder only: what it is for is said once, and it can be replaced there. (gRPC, by the two that speak it.)
OWNERS = {r"boost/json": "base", r"yaml\.h": "base", r"boost/(asio|beast)": "io", r"curl/": "io", r"openssl/": "io",
          r"wslay/": "io", r"Eigen/": "sweep", r"grpcpp/|google/protobuf": "master serve", r"serving\.|tensorflow\.pb": "serve",
          r"(elastic|shards)\.(grpc\.)?pb": "master", r"png\.h": "serve",
          r"CLI/": None, r"nlohmann": None}
# Formatting is everywhere; tests use GoogleTest everywhere.
SHARED = re.compile(r"fmt/|gtest/")


def sources(folder=None):
    return [p for p in (SRC / folder if folder else SRC).rglob("*") if p.suffix in (".h", ".cc")]


def includes(path):
    return re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.M)


@pytest.mark.parametrize("pattern", OWNERS)
def test_a_third_party_header_is_seen_by_one_folder_only(pattern):
    seen = {p.relative_to(SRC).parts[0] for p in sources() for name in includes(p)
            if re.match(pattern, name) and not SHARED.match(name) and not name.startswith("base/")}
    assert seen <= set((OWNERS[pattern] or "").split())


def test_the_core_reads_no_clock_draws_no_random_number_opens_no_file_starts_no_thread():
    for path in [*sources("core"), *sources("api"), *sources("sweep")]:
        banned = {"thread", "mutex", "random", "fstream", "iostream", "filesystem", "unistd.h", "future"}
        if path.stem.endswith("_test") or path.name == "testing.h":
            continue
        assert not banned & set(includes(path)), path


@pytest.mark.parametrize("folder", ["core", "sweep"])
def test_what_is_pure_calls_nothing_of_the_system(folder):
    library = ROOT / f"build/release/src/lib{folder}.a"
    assert library.exists(), "script/build first"
    symbols = set(subprocess.run(["nm", "--undefined-only", "--demangle", library], capture_output=True, text=True,
                                 check=True).stdout.split())
    banned = {"clock_gettime", "gettimeofday", "time", "rand", "random", "getrandom", "open", "fopen", "read", "write",
              "socket", "pthread_create", "getenv", "fork"}
    assert not banned & symbols


def test_the_definition_of_tfjob_is_what_its_script_writes():
    written = subprocess.run([ROOT / "script/crd"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "deploy/crd.yaml").read_text() == written, "script/crd > deploy/crd.yaml"
