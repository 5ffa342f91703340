#!/usr/bin/env python3
"""A network of hosts around one router, with a delay on each host's link, inside this machine.

Every host and the router is a network namespace. A host reaches the router over a pair of TUN devices: this program
reads packets at one end and writes them at the other one after the link's delay. (The kernel's own `netem` is not
everywhere.) The router forwards like any Linux router, so TCP runs from host to host without a proxy in between.
A cut is a blackhole rule in the router, for one direction between two hosts: packets vanish and no sender is told,
as in a real partition.

It is driven by lines of JSON on standard input, and answers each with one line of JSON on standard output:

    {"do": "up", "hosts": [{"name": "edge1", "address": "10.98.0.11", "delayMs": 20}, ...]}
    {"do": "cut", "pairs": [{"from": "edge1", "to": "ledger"}]}      drops packets in this direction
    {"do": "heal", "pairs": [{"from": "edge1", "to": "ledger"}]}

An answer is {"ok": true, ...} or {"error": "..."}. `up` answers the prefix of the namespaces: a host is the namespace
`<prefix>-<name>`. When standard input ends, or at SIGTERM or SIGINT, every process inside the namespaces is killed by
its id (nothing but the lab's own processes can be in them) and the namespaces and devices are removed. So they go also
when the program that started this one was killed.

Needs root, /dev/net/tun and iproute2. Standard library only.
"""

import collections
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time

TUN_DEVICE = "/dev/net/tun"
# From linux/if_tun.h: packets of IP without a header of the driver's own.
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000

PACKET_BYTES_MAX = 65536
# Packets read from one device before the others get their turn.
READ_BURST = 64
# Packets under way in one direction of a link. Beyond them packets are dropped, as a router with a full queue does.
QUEUE_MAX = 20000
# How long processes that were killed may take to go.
KILLED_WAIT_S = 5.0


class NetworkError(Exception):
    """What could not be done, in words for the person who started the lab."""


def ip(*args):
    """Runs iproute2's `ip` and answers its output."""
    return run("ip", *args)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise NetworkError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Direction:
    """One direction of a link: packets that wait for the end of their delay, oldest first."""

    def __init__(self, source, target, delay_s):
        self.source = source
        self.target = target
        self.delay_s = delay_s
        self.waiting = collections.deque()
        self.dropped = 0

    def read(self):
        """Takes packets off the source. The delay is constant, so they leave in the order in which they came."""
        for _ in range(READ_BURST):
            try:
                packet = os.read(self.source, PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            if len(self.waiting) >= QUEUE_MAX:
                self.dropped += 1
                continue
            self.waiting.append((time.monotonic() + self.delay_s, packet))

    def write_due(self, now_s):
        while self.waiting and self.waiting[0][0] <= now_s:
            _, packet = self.waiting.popleft()
            try:
                os.write(self.target, packet)
            except OSError:
                # The device is full, or is being removed. A network may lose packets.
                self.dropped += 1


class Network:
    def __init__(self):
        self.prefix = f"lk{os.getpid()}"
        self.router = f"{self.prefix}-router"
        self.namespaces = []
        self.addresses = {}
        self.directions = []
        self.cuts = set()

    def up(self, hosts):
        if self.namespaces:
            raise NetworkError("the network is up already")
        self._add_namespace(self.router)
        self._set_in(self.router, "ipv4/ip_forward", "1")
        # The stricter of the two values counts. With the check on, the router could drop what it should forward.
        for scope in ("all", "default"):
            self._set_in(self.router, f"ipv4/conf/{scope}/rp_filter", "0")
        for number, host in enumerate(hosts):
            self._add_host(number, host["name"], host["address"], host["delayMs"] / 1000)
        return {"prefix": self.prefix}

    def cut(self, pairs):
        for pair in pairs:
            self._change_rule("add", pair["from"], pair["to"])
            self.cuts.add((pair["from"], pair["to"]))
        return {}

    def heal(self, pairs):
        for pair in pairs:
            self._change_rule("del", pair["from"], pair["to"])
            self.cuts.discard((pair["from"], pair["to"]))
        return {}

    def forward(self, readable, now_s):
        for direction in self.directions:
            if direction.source in readable:
                direction.read()
            direction.write_due(now_s)

    def next_due_s(self):
        due = [direction.waiting[0][0] for direction in self.directions if direction.waiting]
        return min(due) if due else None

    def close(self):
        """Removes everything. Goes on after a failure, so that one leftover does not leave all of it."""
        problems = []
        for namespace in self.namespaces:
            try:
                self._end_processes(namespace)
            except NetworkError as error:
                problems.append(str(error))
        for direction in self.directions:
            # A device goes when its descriptor is closed. Each is the source of one direction.
            os.close(direction.source)
        self.directions = []
        for namespace in self.namespaces:
            try:
                ip("netns", "del", namespace)
            except NetworkError as error:
                problems.append(str(error))
        self.namespaces = []
        if problems:
            raise NetworkError("; ".join(problems))

    def _add_namespace(self, name):
        ip("netns", "add", name)
        self.namespaces.append(name)
        # Nothing here speaks IPv6, and its own announcements would only wake this program.
        self._set_in(name, "ipv6/conf/default/disable_ipv6", "1", must=False)
        ip("-n", name, "link", "set", "lo", "up")

    def _add_host(self, number, name, address, delay_s):
        namespace = f"{self.prefix}-{name}"
        self._add_namespace(namespace)
        host_device, router_device = f"{self.prefix}h{number}", f"{self.prefix}r{number}"
        host_end, router_end = open_tun(host_device), open_tun(router_device)
        self.directions.append(Direction(host_end, router_end, delay_s))
        self.directions.append(Direction(router_end, host_end, delay_s))
        for device, owner in ((host_device, namespace), (router_device, self.router)):
            ip("link", "set", device, "netns", owner)
            ip("-n", owner, "link", "set", device, "up", "txqueuelen", "2000")
        ip("-n", namespace, "addr", "add", f"{address}/32", "dev", host_device)
        ip("-n", namespace, "route", "add", "default", "dev", host_device, "src", address)
        ip("-n", self.router, "route", "add", f"{address}/32", "dev", router_device)
        self.addresses[name] = address

    def _change_rule(self, change, source, target):
        for name in (source, target):
            if name not in self.addresses:
                raise NetworkError(f"there is no host {name}")
        if (change == "add") == ((source, target) in self.cuts):
            raise NetworkError(f"{source} to {target} is {'cut already' if change == 'add' else 'not cut'}")
        ends = ("from", self.addresses[source], "to", self.addresses[target])
        ip("-n", self.router, "rule", change, *ends, "type", "blackhole")

    def _set_in(self, namespace, setting, value, must=True):
        try:
            run("ip", "netns", "exec", namespace, "sh", "-c", f"echo {value} > /proc/sys/net/{setting}")
        except NetworkError:
            if must:
                raise

    def _end_processes(self, namespace):
        until_s = time.monotonic() + KILLED_WAIT_S
        while True:
            pids = [int(pid) for pid in ip("netns", "pids", namespace).split()]
            if not pids:
                return
            if time.monotonic() > until_s:
                raise NetworkError(f"processes {pids} in {namespace} do not end")
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)


def open_tun(name):
    try:
        descriptor = os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NetworkError(f"{TUN_DEVICE} cannot be opened: {error.strerror}") from error
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        raise NetworkError(f"the TUN device {name} cannot be made: {error.strerror} (this needs root)") from error
    return descriptor


def answer(network, line):
    try:
        command = json.loads(line)
        name = command.pop("do", None)
        actions = {"up": network.up, "cut": network.cut, "heal": network.heal}
        if name not in actions:
            raise NetworkError(f"unknown command: {name}")
        return {"ok": True, **actions[name](**command)}
    except (NetworkError, ValueError, TypeError, KeyError) as error:
        return {"error": str(error)}


def serve(network):
    """Forwards packets and follows commands until standard input ends."""
    commands = sys.stdin.fileno()
    text = b""
    while True:
        due_s = network.next_due_s()
        wait_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        # Not epoll: its time-outs are whole milliseconds, and a delay may be half of one.
        readable, _, _ = select.select([commands, *(d.source for d in network.directions)], [], [], wait_s)
        network.forward(set(readable), time.monotonic())
        if commands in readable:
            chunk = os.read(commands, PACKET_BYTES_MAX)
            if not chunk:
                return
            *lines, text = (text + chunk).split(b"\n")
            for line in lines:
                print(json.dumps(answer(network, line)), flush=True)


def stop(_signal, _frame):
    raise SystemExit(0)


def main():
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    network = Network()
    try:
        serve(network)
    finally:
        # A second signal must not leave half of it behind.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            network.close()
        except NetworkError as error:
            sys.exit(f"the lab's network was not removed completely: {error}")


if __name__ == "__main__":
    main()
