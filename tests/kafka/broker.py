"""One Kafka broker (KRaft: it is its own controller) in a folder of its own, on ports of this machine only.

    with Broker() as broker:
        df.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.address)…

Invariant: nothing is left when the block ends, neither the process nor the folder.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType

from tests.kafka.artifacts import BROKER, UnavailableError, jars, java

WAIT = 60  # seconds until it listens
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker that runs while its block does; a topic is created when something is first written to it."""

    def __init__(self, partitions: int = 2) -> None:
        self._partitions = partitions
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self.address = ""

    def __enter__(self) -> Broker:
        command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", ":".join(map(str, jars(BROKER)))]
        self._folder = Path(tempfile.mkdtemp(prefix="cerite-kafka-"))
        try:
            port = self._start(command, self._folder)
        except BaseException:
            self.stop()
            raise
        self.address = f"127.0.0.1:{port}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process, then remove its folder."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, command: list[str], folder: Path) -> int:
        port, controller = _free_ports(2)
        settings = folder / "server.properties"
        text = _SETTINGS.format(port=port, controller=controller, folder=folder, partitions=self._partitions)
        settings.write_text(text, "utf-8")
        name = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        form = [*command, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(settings)]
        done = subprocess.run(form, capture_output=True, text=True, check=False, timeout=WAIT)
        if done.returncode:
            raise UnavailableError(f"the broker's storage cannot be created: {(done.stdout + done.stderr)[-400:]}")
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        until = time.monotonic() + WAIT
        while not _listens(port):
            if self._process.poll() is not None or time.monotonic() > until:
                said = (folder / "log").read_text("utf-8", errors="replace")[-400:]
                raise UnavailableError(f"the broker does not start: {said}")
            time.sleep(0.1)
        return port


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    open_sockets = [socket.socket() for _ in range(count)]
    try:
        for each in open_sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in open_sockets]
    finally:
        for each in open_sockets:
            each.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
