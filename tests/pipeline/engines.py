"""Servers that machines share to run nights, from the system's packages: PostgreSQL, and Redis as broker.

PostgreSQL refuses to run as root, so it runs as another user then, in a folder that any user can reach.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "a-password-of-the-test"
_PLACES = ":".join(map(str, [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), os.environ["PATH"]]))
_AS_NOBODY: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def required() -> None:
    """Skips the tests where a part is missing."""
    for module in ("dagster_postgres", "dagster_celery", "redis"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs the extra cluster ({module})", allow_module_level=True)
    for program, package in (("postgres", "postgresql"), ("redis-server", "redis-server")):
        if shutil.which(program, path=_PLACES) is None:
            pytest.skip(f"needs {program} (Debian: apt-get install {package})", allow_module_level=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class Database:
    """A PostgreSQL server: its folder and port; its users need no password."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://memstate:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = {"listen_addresses": "127.0.0.1", "fsync": "off", "port": self.port, "unix_socket_directories": ""}
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        self.process = _started("postgres", ["-D", str(self.folder / "data"), *flags], self.folder, self.port)
        asked = [str(shutil.which("pg_isready", path=_PLACES)), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        # it listens while it still recovers from the end of its last process
        wait_until(lambda: subprocess.run(asked, check=False).returncode == 0)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(3)  # SIGQUIT ends its sessions at once
            self.process.wait(30)
            self.process = None


@contextmanager
def database() -> Iterator[Database]:
    """A new database server."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        server = Database(Path(name), free_port())
        if _AS_NOBODY:
            shutil.chown(name, _AS_NOBODY["user"])
        arguments = ["-D", f"{name}/data", "--auth=trust", "--username=memstate", "--no-sync", "--locale=C"]
        _run("initdb", [*arguments, "--encoding=UTF8"], cwd=name)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def broker(folder: Path, port: int | None = None) -> Iterator[str]:
    """A Redis server that asks for a password; its URL."""
    port = port or free_port()
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", PASSWORD]
    process = _started("redis-server", [*arguments, "--dir", str(folder)], folder, port, as_nobody=False)
    try:
        yield f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


@contextmanager
def rabbitmq() -> Iterator[str]:
    """A RabbitMQ server for this machine alone; its URL. Its script runs it as a user of its own."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="rabbitmq-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o777)
        given = {
            "NODENAME": f"node{port}@localhost",
            "NODE_PORT": str(port),
            "NODE_IP_ADDRESS": "127.0.0.1",
            "DIST_PORT": str(free_port()),
            "MNESIA_BASE": f"{name}/data",
            "LOG_BASE": f"{name}/log",
            "ENABLED_PLUGINS_FILE": f"{name}/plugins",
            "PID_FILE": f"{name}/pid",
        }
        environment = os.environ | {f"RABBITMQ_{key}": value for key, value in given.items()}
        process = _started("rabbitmq-server", [], Path(name), port, as_nobody=False, env=environment)
        try:
            yield f"amqp://guest:guest@127.0.0.1:{port}//"
        finally:
            os.kill(int(Path(name, "pid").read_text()), signal.SIGKILL)
            process.wait(30)


@dataclass(frozen=True)
class Network:
    """A network of one machine, which reaches this one by an address of its own.

    Attributes:
        name: of the namespace.
        address: of this machine, seen from there.
    """

    name: str
    address: str

    def command(self, arguments: list[str]) -> list[str]:
        """What runs a command there."""
        return ["ip", "netns", "exec", self.name, *arguments]


def networks_possible() -> bool:
    """Whether this process may make network namespaces."""
    name = f"probe{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


@contextmanager
def network(number: int, ports: Iterable[int]) -> Iterator[Network]:
    """A network namespace with nothing in it but a way to some ports of this machine.

    Args:
        number: distinguishes it from others, 0 to 255.
        ports: they listen on this machine, and are reached there at its address.
    """
    name, link, address = f"machine{os.getpid()}n{number}", f"v{os.getpid()}n{number}"[-15:], f"10.213.{number}"
    inside = ["ip", "-n", name]
    with ExitStack() as made:
        _run_ip(["ip", "netns", "add", name])
        made.callback(_run_ip, ["ip", "netns", "del", name])
        _run_ip(["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name])
        _run_ip(["ip", "address", "add", f"{address}.1/30", "dev", link])
        _run_ip(["ip", "link", "set", link, "up"])
        for each in ("lo", "eth0"):
            _run_ip([*inside, "link", "set", each, "up"])
        _run_ip([*inside, "address", "add", f"{address}.2/30", "dev", "eth0"])
        for port in ports:
            made.enter_context(forwarded(f"{address}.1", port))
        yield Network(name, f"{address}.1")


def _run_ip(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def forwarded(address: str, port: int, to: int | None = None, delay: float = 0.0) -> Iterator[None]:
    """Takes connections to an address to a port of the loopback address, by default the same one; the end cuts them.

    Args:
        address: where it listens.
        port: the port there.
        to: the port of the loopback address.
        delay: seconds by which each block is late.
    """

    connections: set[socket.socket] = set()

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to or port)) as server:
                connections.update((server, self.request))
                back = threading.Thread(target=_copy, args=(server, self.request, delay))
                back.start()
                _copy(self.request, server, delay)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close, allow_reuse_address = True, False, True

    with Server((address, port), Forward) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            for each in [*connections]:
                with suppress(OSError):  # closed already
                    each.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket, delay: float) -> None:
    with suppress(OSError):
        while block := source.recv(1 << 16):
            time.sleep(delay)
            target.sendall(block)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def wait_until(said: Callable[[], Any], seconds: float = 300) -> Any:
    """What a function says, once it is true."""
    until = time.monotonic() + seconds
    while not (found := said()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)
    return found


def _run(program: str, arguments: list[str], **options: Any) -> None:
    found = shutil.which(program, path=_PLACES)
    subprocess.run([str(found), *arguments], check=True, stdout=subprocess.DEVNULL, **_AS_NOBODY, **options)


def _started(
    program: str, arguments: list[str], folder: Path, port: int, *, as_nobody: bool = True, **options: Any
) -> subprocess.Popen[bytes]:
    """A server, when it listens."""
    who = (_AS_NOBODY if as_nobody else {}) | options
    with (folder / f"{program}.log").open("ab") as log:
        command = [str(shutil.which(program, path=_PLACES)), *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **who)

    def listens() -> bool:
        assert process.poll() is None, (folder / f"{program}.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens)
    return process
