"""The commands of script/cluster."""

import argparse
import re
import signal
import subprocess
import sys

from lab import Failure, binaries, control, down, kwok, node, pki, state, up

ABOUT = """A real Kubernetes on this machine, for tests and to play with. See docs/test-cluster.md.

  script/cluster build                     builds the programs (once for a user, some minutes), prints where they are
  script/cluster up                        API server, etcd and controller manager: a cluster without a node
  script/cluster up --nodes 1              the whole, with a node that runs pods, or with two; needs root
  script/cluster status                    which clusters there are
  script/cluster kubeconfig NAME --user U  a kubeconfig for another user, for tests of RBAC; prints where it is
  script/cluster kwok NAME 10              adds ten nodes that exist on paper only, for pods by the thousand
  script/cluster kill NAME etcd            kills a component, restart brings it back
  script/cluster kill NAME node2/kubelet   kills a component of the second node
  script/cluster power-off NAME node2      ends all of the second node at once, without a last word
  script/cluster down                      leaves nothing"""


def parser():
    top = argparse.ArgumentParser(prog="script/cluster", description=ABOUT,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("build")
    build.add_argument("--with-go-operator", action="store_true", help="also the training-operator in Go")
    build.add_argument("--with-kwok", action="store_true", help="also kwok, which plays nodes and pods")
    build.add_argument("--with-helm", action="store_true", help="also helm, for the chart in deploy/helm")
    build.add_argument("--with-kueue", action="store_true", help="also Kueue, whose queues hold jobs back")
    start = commands.add_parser("up")
    start.add_argument("--name", default="default")
    start.add_argument("--nodes", type=int, choices=(0, 1, 2), default=0)
    start.add_argument("--fsync", action="store_true", help="etcd writes through to the disk")
    start.add_argument("--audit", action="store_true", help="every request to the API server is a line in audit.log, not only those of service accounts")
    start.add_argument("--grace", type=int, metavar="SECONDS",
                       help="how long a node may be silent before Kubernetes marks it; by default as long as it does elsewhere")
    end = commands.add_parser("down")
    which = end.add_mutually_exclusive_group()
    which.add_argument("--name", default="default")
    which.add_argument("--all", action="store_true")
    commands.add_parser("status")
    for command in ("kill", "restart"):
        action = commands.add_parser(command)
        action.add_argument("name")
        action.add_argument("component")
    off = commands.add_parser("power-off")
    off.add_argument("name")
    off.add_argument("node")
    played = commands.add_parser("kwok")
    played.add_argument("name")
    played.add_argument("nodes", type=int)
    config = commands.add_parser("kubeconfig")
    config.add_argument("name")
    config.add_argument("--user", required=True, help="system:serviceaccount:NAMESPACE:NAME is in its groups by itself")
    config.add_argument("--group", action="append", default=[])
    return top


def tell(cluster):
    print(f"export KUBECONFIG={cluster.dir}/admin.conf")
    # kubectl remembers what an address offers, and the next cluster may have the same address.
    print(f"export KUBECACHEDIR={cluster.dir}/kubectl")
    print(f"export PATH={cluster.programs}:$PATH   # kubectl")


def status():
    for name in state.names():
        try:
            cluster = state.load(name)
            running = control.ask(cluster, list=True)
        except (Failure, OSError, ValueError):
            print(f"{name}: not up; script/cluster down --name {name} removes what is left")
            continue
        ended = [f"{part} ended" for part, seen in running.items() if seen["status"] is not None]
        print(f"{name}: {('no node', 'a node', 'two nodes')[cluster.nodes]}", cluster.server,
              f"KUBECONFIG={cluster.dir}/admin.conf", *ended, sep=", ")


def kubeconfig(name, user, groups):
    cluster = state.load(name)
    if found := re.fullmatch(r"system:serviceaccount:([^:]+):[^:]+", user):
        groups = [*groups, "system:serviceaccounts", f"system:serviceaccounts:{found[1]}"]
    file = re.sub(r"[^A-Za-z0-9.-]", "-", user)
    if (cluster.dir / "pki" / f"{file}.key").exists() and not file.startswith("user-"):
        file = f"user-{file}"  # not over the certificate of a component
    pki.sign(cluster.dir / "pki", file, user, groups)
    target = cluster.dir / f"{file}.conf"
    pki.write_kubeconfig(cluster.dir / "pki", file, cluster.server, target)
    return target


def run(words):
    options = parser().parse_args(words)
    match options.command:
        case "build":
            print(binaries.ensure(binaries.KUBERNETES))
            if options.with_go_operator:
                print(binaries.ensure(binaries.OPERATOR))
            if options.with_kwok:
                print(binaries.ensure(binaries.KWOK))
            if options.with_helm:
                print(binaries.ensure(binaries.HELM))
            if options.with_kueue:
                print(binaries.ensure(binaries.KUEUE))
        case "up":
            tell(up.up(options.name, options.nodes, options.fsync, options.audit, options.grace))
        case "down":
            down.down_all() if options.all else down.down(options.name)
        case "status":
            status()
        case "kill":
            control.kill(*control.find(state.load(options.name), options.component))
        case "restart":
            up.restart(state.load(options.name), options.component)
        case "power-off":
            node.power_off(state.load(options.name), options.node)
        case "kwok":
            kwok.start(state.load(options.name), options.nodes)
        case "kubeconfig":
            print(kubeconfig(options.name, options.user, options.group))


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):  # an `up` that is told to stop clears what it has begun
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        run(sys.argv[1:])
    except Failure as failure:
        sys.exit(f"cluster: {failure}")
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace") if error.stderr else ""
        sys.exit(f"cluster: {' '.join(map(str, error.cmd))} failed with {error.returncode}\n{said}")
    except KeyboardInterrupt:
        sys.exit(130)
