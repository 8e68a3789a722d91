"""Examination of a cluster whose pods execute runs: whether its API answers, and lets this machine make them.

It asks as Dagster's launcher does: with the account of this pod, or the file that the settings name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.instance_settings import missing
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, LAUNCHER, NAMESPACE_VARIABLE

if TYPE_CHECKING:
    from kubernetes.client import Configuration

NAME = "kubernetes"
PATIENCE_SECONDS = 5


def cluster(kept: str, environ: Mapping[str, str]) -> Finding:
    """Whether runs can be pods.

    Args:
        kept: Dagster's settings; those of the environment if they name no cluster.
        environ: the environment of the machine.
    """
    both = (IMAGE_VARIABLE, NAMESPACE_VARIABLE)
    if lacks := missing([name for name in both if name in kept or LAUNCHER not in kept], environ):
        return Finding(NAME, False, lacks)
    try:
        return _asked(_launcher(kept), environ)
    except ImportError:
        return Finding(NAME, False, f"{LAUNCHER} needs the package dagster_k8s: pip install 'memstate[k8s]'")


def _launcher(kept: str) -> Mapping[str, Any]:
    """The settings of the launcher; those that memstate writes if there are none."""
    import yaml

    if LAUNCHER not in kept:
        return {"job_namespace": {"env": NAMESPACE_VARIABLE}}
    config: Mapping[str, Any] = yaml.safe_load(kept)["run_launcher"]["config"]
    return config


def _asked(launcher: Mapping[str, Any], environ: Mapping[str, str]) -> Finding:
    """Asks whether jobs may be made, which makes none."""
    from kubernetes.client import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    namespace = launcher.get("job_namespace", "default")
    if isinstance(namespace, Mapping):
        namespace = environ.get(str(namespace.get("env")), "")
    try:
        access = _access(launcher)
        allowed = _may_make_jobs(access, str(namespace))
    except ConfigException as error:
        return Finding(NAME, False, f"this machine is no pod of a cluster: {_line(error)}")
    except (ApiException, HTTPError, OSError) as error:  # the body of an answer is not shown
        problem = getattr(error, "reason", None) or error
        return Finding(NAME, False, f"the API of Kubernetes does not answer: {_line(problem)}")
    if not allowed:
        advice = "give its service account the Role of deploy/kubernetes.workers.yaml"
        return Finding(NAME, False, f"{access.host} lets this machine make no jobs in namespace {namespace}: {advice}")
    return Finding(NAME, True, f"{access.host} answers; runs are pods in namespace {namespace}")


def _access(launcher: Mapping[str, Any]) -> Configuration:
    from kubernetes import config
    from kubernetes.client import Configuration

    access = Configuration()
    if launcher.get("load_incluster_config", True):
        config.load_incluster_config(client_configuration=access)
    else:
        config.load_kube_config(launcher.get("kubeconfig_file"), client_configuration=access)
    access.retries = 0
    return access


def _may_make_jobs(access: Configuration, namespace: str) -> bool:
    from kubernetes import client

    asked = client.V1ResourceAttributes(group="batch", resource="jobs", verb="create", namespace=namespace)
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked))
    with client.ApiClient(access) as api:
        asks = client.AuthorizationV1Api(api)
        answer = asks.create_self_subject_access_review(review, _request_timeout=PATIENCE_SECONDS)
    return bool(answer.status.allowed)


def _line(error: object) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
