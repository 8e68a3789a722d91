"""An API server of Kubernetes in this process, which has what Dagster asks: jobs, pods and events of one namespace.

It allows what the Role of the manifests allows, refuses objects that the schemas of Kubernetes do not, and starts no
container: a test may run the command of a pod itself, and says how the pod ended.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from memstate_pipeline.deploy.kubernetes_runs import run_files

NAMESPACE = "agents"
_VERBS = {"POST": "create", "DELETE": "delete"}
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_EMPTY = {"metadata": {}, "items": []}


def manifests() -> dict[tuple[str, str], Any]:
    """The objects of the manifests of runs as pods, by kind and name."""
    found = list(yaml.safe_load_all(run_files()["kubernetes.workers.yaml"]))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@dataclass
class Cluster:
    """What a cluster was asked.

    Attributes:
        rules: those of the Role.
        started: called with each new job.
        jobs: by name, with their status.
        denied: requests that the Role does not allow.
    """

    rules: list[Any]
    started: Callable[[Any], None] = lambda _: None
    jobs: dict[str, Any] = field(default_factory=dict)
    denied: list[str] = field(default_factory=list)
    url: str = ""

    def kubeconfig(self, folder: Path) -> Path:
        """A file that names this server."""
        entry = {"name": "test", "cluster": {"server": self.url}}
        context = {"name": "test", "context": {"cluster": "test", "user": "test"}}
        user = {"name": "test", "user": {"token": "a-token-of-the-test"}}
        document = {"apiVersion": "v1", "kind": "Config", "current-context": "test"}
        file = folder / "kubeconfig.yaml"
        file.write_text(yaml.safe_dump(document | {"clusters": [entry], "contexts": [context], "users": [user]}))
        return file

    def allows(self, group: str, resource: str, verb: str) -> bool:
        return any(
            group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
            for rule in self.rules
        )

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and document for a request."""
        if path == _REVIEWS:
            asked = body["spec"]["resourceAttributes"]
            allowed = self.allows(asked["group"], asked["resource"], asked["verb"])
            return 201, body | {"status": {"allowed": allowed and asked["namespace"] == NAMESPACE}}
        before, _, place = path.partition(f"/namespaces/{NAMESPACE}/")
        group, (kind, *rest) = {"/apis/batch/v1": "batch", "/api/v1": ""}[before], place.split("/")
        resource = "/".join([kind, *rest[1:]])
        verb = _VERBS.get(method) or ("get" if rest else "list")
        if not self.allows(group, resource, verb):
            self.denied.append(f"{verb} {resource}")
            return 403, {"kind": "Status", "message": f"may not {verb} {resource}"}
        return self._jobs(method, rest[0] if rest else "", body) if kind == "jobs" else (200, _EMPTY)

    def _jobs(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        if method == "POST":
            kubernetes_validate.validate(body, kubernetes_validate.latest_version(), strict=True)
            self.jobs[body["metadata"]["name"]] = body | {"status": {"active": 1}}
            self.started(body)
            return 201, body
        if not name:
            return 200, _EMPTY | {"items": list(self.jobs.values())}
        return (200, self.jobs[name]) if name in self.jobs else (404, {"kind": "Status", "message": "no such job"})


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that has the Role of the manifests."""
    found = Cluster(manifests()["Role", "memstate-dagster"]["rules"])

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, document = found.answer(self.command, self.path.partition("?")[0], body)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
