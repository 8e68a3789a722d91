"""Nights as pods: Dagster's daemon makes jobs at an API of Kubernetes, and the test runs the commands of their pods.

A pod has what its job gives it: the arguments, a home of its own, the database and the object storage. It cannot reach
the API.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.state.home import Home
from memstate_core.storage.lease import lease_holder
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, NAMESPACE_VARIABLE
from tests import warm
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.engine_machines import (
    SCOPES,
    Shared,
    desk_of,
    drop,
    environment,
    nights,
    own_database,
    published,
    shared,
    statuses,
    storing_late,
)
from tests.pipeline.engines import required, wait_until
from tests.pipeline.kubernetes_api import NAMESPACE, Cluster, cluster
from tests.pipeline.test_checkout import observations

required()
pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
pytestmark = pytest.mark.slow
__all__ = ["shared"]  # the fixture
URL = "s3://bucket/pods"


@dataclass
class Pods:
    """Runs the commands of jobs.

    Attributes:
        api: where their status is.
        desk: the home of the daemon, in whose place each has its own.
        given: the variables of the ConfigMap and the Secret.
    """

    api: Cluster
    desk: Path
    given: dict[str, str]
    processes: dict[str, warm.Process] = field(default_factory=dict)

    def start(self, job: Any) -> None:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        name = job["metadata"]["name"]
        home = self.desk.with_name(f"pod{len(self.processes)}")
        drop(home, "none").unlink()
        arguments = [each.replace(str(self.desk), str(home)) for each in container["args"]]
        own = clean_environment(**self.given, MEMSTATE_HOME=str(home), DAGSTER_HOME=str(home / "dagster"))
        (home / "dagster").mkdir()
        with (home / "log.txt").open("ab") as output:
            self.processes[name] = warm.Process(["-m", *arguments], own, output, output)
        threading.Thread(target=self._watch, args=(name,)).start()

    def _watch(self, name: str) -> None:
        code = self.processes[name].wait()
        self.api.jobs[name]["status"] = {"failed" if code else "succeeded": 1}

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)


def reaching(api: Cluster, desk: Path) -> None:
    """Has Dagster use the API of the test, and look every second whether a pod lives."""
    settings = desk / "dagster" / "dagster.yaml"
    file = f"load_incluster_config: false\n    kubeconfig_file: {api.kubeconfig(desk)}"
    text = settings.read_text().replace("load_incluster_config: true", file)
    settings.write_text(text.replace("poll_interval_seconds: 60", "poll_interval_seconds: 1"))


def test_pods_make_queued_nights_and_one_of_them_dies(shared: Shared, tmp_path: Path) -> None:
    """The night in the place of one whose pod died waits for the lease that this one left."""
    database, named = shared
    given = {name: text for name, text in named.items() if name not in (BROKER_VARIABLE, RESULTS_VARIABLE)}
    given |= own_database(database, "pods") | {"MEMSTATE_STORE_URL": URL, "MEMSTATE_STORE_SHARDS": "2"}
    given["MEMSTATE_STORE_LEASE_SECONDS"] = "30"
    chosen = {IMAGE_VARIABLE: "memstate", NAMESPACE_VARIABLE: NAMESPACE}
    desk = desk_of(tmp_path, given | chosen)
    assert run_memstate(desk.home, "import", str(drop(desk.home, "one")), **given).code == 0
    with ExitStack() as running:
        api = running.enter_context(cluster())
        reaching(api, desk.home)
        late, faults = running.enter_context(storing_late())
        pods = Pods(api, desk.home, given | late)
        running.callback(pods.end)
        api.started = pods.start
        running.enter_context(environment(desk.given))
        instance = running.enter_context(dagster_instance(Home(desk.home)))
        running.enter_context(desk.running())
        wait_until(lambda: "Dagster run" in lease_holder(storage(URL, STORE)))
        (first,) = pods.processes.values()
        os.kill(first.pid, signal.SIGKILL)
        faults.none()
        wait_until(lambda: len(pods.processes) == 2)
        assert lease_holder(storage(URL, STORE)), "the lease of the pod that died holds still"
        wait_until(lambda: published(instance))
        assert sorted(statuses(instance)) == ["FAILURE", "SUCCESS", "SUCCESS"]
        assert len(nights(instance)) == len(api.jobs) == 3
    assert api.denied == [], "the Role of the manifests allows all that Dagster asks"
    carl = tmp_path / "carl"
    assert run_memstate(carl, "pull", **given).code == 0
    assert observations(carl) == [f"one-{scope}" for scope in SCOPES]
    assert given[POSTGRES_VARIABLE] not in str(list(api.jobs.values()))
