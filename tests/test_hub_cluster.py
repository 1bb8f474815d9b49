"""The class server that grades on a Dask cluster."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from cluster import Cluster, make_certificates
from hub import (
    CHAPTER,
    RIGHT,
    end_everything,
    free_ports,
    needed,
    resume_hub,
    start_folder,
    until,
)

from course_grader.judge import sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sandbox.missing() is not None, reason="no sandbox on this machine"
    ),
]


def test_what_is_handed_in_is_graded_on_the_cluster(tmp_path: Path) -> None:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    certificates = make_certificates(tmp_path)
    # the hub's own port are looked for while this one is taken
    cluster = Cluster(free_ports(11) + 10, certificates, tmp_path)
    start_folder(folder, ["tt-ada"], f'scheduler = "{cluster.address}"\n')
    place = folder / "mini" / "hub" / "grader" / ".config" / "dask"
    place.mkdir(parents=True)
    keys = {
        "ca-file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
        "cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
        "key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
    }
    for name, known in keys.items():
        shutil.copy(certificates[known], place / f"{name}.pem")
    tls = {
        "ca-file": str(place / "ca-file.pem"),
        "client": {
            "cert": str(place / "cert.pem"),
            "key": str(place / "key.pem"),
        },
    }
    settings = {"distributed": {"comm": {"tls": tls}}}
    (place / "tls.yaml").write_text(json.dumps(settings))
    hub = resume_hub(folder)
    try:
        hub.as_grader("release")
        ada = hub.person("tt-ada").start()
        ada.write(RIGHT)
        ada.assignments("submit")
        until(ada.has_feedback, "there is no feedback")
        assert hub.points() == {"tt-ada": 5.0}
        log = (hub.course / "class" / "grading.log").read_text()
        assert f"course grade {CHAPTER} --scheduler {cluster.address}" in log
        heard = [one.read_text() for one in tmp_path.glob("scheduler-*.log")]
        assert any("Receive client connection" in one for one in heard)
    finally:
        end_everything(hub)
        cluster.close()
