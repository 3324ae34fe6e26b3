"""Addresses that no other cluster of this machine has.

A cluster has a number, and all its addresses follow from it. What leases the number is a listening socket on a
loopback address of that number: the kernel gives it to one process only, whoever the user and wherever the state
directory is, and takes it back when the last holder (the cluster's supervisor) has ended.

    number N, no node       127.77.N.1       every component, on its usual port
    number N, with a node   10.(200+N)/16    pods .0.0/17, services .128.0/18, the host .255.1, the first node .255.2

Node I (from 1) has the pods of .(16*(I-1)).0/20 and the link .255.(4*(I-1))/30, whose other end is its gateway: the host
for the first node, the first node for the others.
"""

import ipaddress
import json
import socket
import subprocess

from lab import Failure

NUMBERS = 32
LEASE_PORT = 6442


def network(number):
    return ipaddress.ip_network(f"10.{200 + number}.0.0/16")


def pods(number):
    """The pods of all nodes."""
    return f"10.{200 + number}.0.0/17"


def pods_of(number, index):
    return f"10.{200 + number}.{16 * (index - 1)}.0/20"


def services(number):
    return f"10.{200 + number}.128.0/18"


def dns(number):
    return f"10.{200 + number}.128.10"


def kubernetes_service(number):
    return f"10.{200 + number}.128.1"


def gateway(number, index):
    return f"10.{200 + number}.255.{4 * (index - 1) + 1}"


def node(number, index=1):
    return f"10.{200 + number}.255.{4 * (index - 1) + 2}"


def loopback(number):
    return f"127.77.{number}.1"


def routed():
    """The networks that this machine has a way to already, default routes aside."""
    out = subprocess.run(["ip", "-json", "-4", "route", "show", "table", "all"], capture_output=True, text=True,
                         check=True).stdout
    targets = [route["dst"] for route in json.loads(out or "[]")]
    return [ipaddress.ip_network(target) for target in targets if target != "default"]


def lease(with_node):
    """A number that nobody has, and the socket that holds it."""
    taken = routed() if with_node else []
    for number in range(NUMBERS):
        if any(network(number).overlaps(other) for other in taken):
            continue
        held = socket.socket()
        try:
            held.bind((loopback(number), LEASE_PORT))
            held.listen(1)
            return number, held
        except OSError:
            held.close()
    raise Failure(f"all {NUMBERS} address ranges for clusters are taken")
