"""A Dask cluster for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from commands import SCRIPTS, environment


def make_certificates(folder: Path) -> dict[str, str]:
    """A certificate that is its own authority, as Dask's settings in an
    environment."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    settings = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(certificate)}
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        place = f"DASK_DISTRIBUTED__COMM__TLS__{who}"
        settings[f"{place}__CERT"] = str(certificate)
        settings[f"{place}__KEY"] = str(key)
    return settings


class Cluster:
    """A scheduler and two workers on the loopback, as docs/cluster.md starts them."""

    def __init__(self, port: int, settings: dict[str, str], logs: Path) -> None:
        self.address = f"tls://127.0.0.1:{port}"
        self.settings = environment(activated=False) | settings
        self.logs = logs
        self.scheduler = self.start(
            "scheduler",
            *("--protocol", "tls", "--host", "127.0.0.1"),
            *("--port", str(port), "--no-dashboard"),
        )
        self.workers = [
            self.start(
                "worker",
                self.address,
                *("--nthreads", "1", "--nworkers", "1", "--no-nanny"),
                *("--no-dashboard", "--protocol", "tls"),
                *("--name", name, "--host", "127.0.0.1"),
            )
            for name in ("one", "two")
        ]

    def start(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.logs / f"{what}-{os.urandom(3).hex()}.log").open(
            "wb"
        ) as log:
            return subprocess.Popen(
                [SCRIPTS / "dask", what, *arguments],
                env=self.settings,
                cwd=self.logs,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def close(self) -> None:
        for one in (*self.workers, self.scheduler):
            one.kill()
            one.wait()
