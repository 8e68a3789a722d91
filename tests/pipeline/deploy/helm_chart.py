"""What Dagster's Helm chart makes of values, as far as tests ask: its `dagster.yaml`, its pods, the keys that it takes.

The chart itself comes from a network. This follows its templates and the schema of its values, version 1.13.
"""

from __future__ import annotations

from typing import Any

_POD = {
    *("image", "env", "envConfigMaps", "envSecrets", "labels", "nodeSelector", "affinity", "tolerations"),
    *("podSecurityContext", "securityContext", "resources", "readinessProbe", "livenessProbe", "startupProbe"),
    *("annotations", "schedulerName", "volumeMounts", "volumes", "initContainerResources"),
}
_RUN_POD = {"containerConfig", "podSpecConfig", "podTemplateSpecMetadata", "jobSpecConfig", "jobMetadata"}
KEYS: dict[str, set[str]] = {
    "": {
        *("dagsterWebserver", "dagster-user-deployments", "postgresql", "generatePostgresqlPasswordSecret", "global"),
        *("generateCeleryConfigSecret", "rabbitmq", "redis", "flower", "ingress", "imagePullSecrets", "busybox"),
        *("computeLogManager", "scheduler", "runLauncher", "pythonLogs", "dagsterDaemon", "migrate", "telemetry"),
        *("serviceAccount", "retention", "concurrency", "additionalInstanceConfig", "nameOverride", "rbacEnabled"),
    },
    "global": {
        *("postgresqlSecretName", "dagsterHome", "serviceAccountName", "celeryConfigSecretName"),
        "dagsterInstanceConfigMap",
    },
    "postgresql": {
        *("image", "enabled", "postgresqlHost", "postgresqlUsername", "postgresqlPassword", "postgresqlDatabase"),
        *("postgresqlParams", "postgresqlScheme", "service"),
    },
    "dagsterWebserver": {
        *("replicaCount", "nameOverride", "pathPrefix", "service", "workspace", "deploymentLabels", "enableReadOnly"),
        *("dbStatementTimeout", "dbPoolRecycle", "logLevel", *_POD),
    },
    "dagsterDaemon": {
        *("enabled", "runCoordinator", "heartbeatTolerance", "deploymentLabels", "runMonitoring", "runRetries"),
        *("sensors", "schedules", *_POD),
    },
    "dagster-user-deployments": {"enabled", "enableSubchart", "imagePullSecrets", "deployments"},
    "dagster-user-deployments.deployments": {
        *("name", "dagsterApiGrpcArgs", "codeServerArgs", "includeConfigInLaunchedRuns", "port"),
        *_POD - {"initContainerResources"},
    },
    "runLauncher": {"type", "config"},
    "runLauncher.config": {"celeryK8sRunLauncher", "k8sRunLauncher", "customRunLauncher"},
    "runLauncher.config.k8sRunLauncher": {
        *("image", "imagePullPolicy", "jobNamespace", "loadInclusterConfig", "kubeconfigFile", "envConfigMaps"),
        *("envSecrets", "envVars", "volumeMounts", "volumes", "labels", "failPodOnRunFailure", "resources"),
        *("schedulerName", "securityContext", "runK8sConfig"),
    },
    "runLauncher.config.k8sRunLauncher.runK8sConfig": _RUN_POD,
}
"""The keys of a section of the values; what is in a list counts as one section."""


def section(values: Any, path: str) -> Any:
    """A section of the values, by the names on the way to it; of a list, its only entry."""
    for name in filter(None, path.split(".")):
        values = values[name]
    return values[0] if isinstance(values, list) else values


def instance_settings(values: Any, namespace: str) -> dict[str, Any]:
    """The `dagster.yaml` of the chart, without its database, of which `database` has the settings."""
    daemon = values["dagsterDaemon"]
    assert not any(daemon[name]["enabled"] for name in ("runCoordinator", "runMonitoring", "runRetries"))
    launcher = {"module": "dagster_k8s", "class": values["runLauncher"]["type"], "config": _launcher(values, namespace)}
    return {
        "scheduler": {"module": "dagster.core.scheduler", "class": "DagsterDaemonScheduler"},
        "run_launcher": launcher,
        "compute_logs": {"module": "dagster.core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"},
        "telemetry": values["telemetry"],
        **values["additionalInstanceConfig"],
    }


def database(values: Any) -> dict[str, Any]:
    """The settings of the history in `dagster.yaml`."""
    given = values["postgresql"]
    named = {"username": given["postgresqlUsername"], "password": {"env": "DAGSTER_PG_PASSWORD"}}
    place = {"hostname": given["postgresqlHost"], "db_name": given["postgresqlDatabase"]}
    return {"postgres_db": {**named, **place, "port": given["service"]["port"], "params": {}}}


def _launcher(values: Any, namespace: str) -> dict[str, Any]:
    given = values["runLauncher"]["config"]["k8sRunLauncher"]
    pod = given["runK8sConfig"]
    return {
        "load_incluster_config": given["loadInclusterConfig"],
        "job_namespace": namespace,
        "image_pull_policy": given["imagePullPolicy"],
        "service_account_name": "dagster",
        "dagster_home": values["global"]["dagsterHome"],
        "instance_config_map": "dagster-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
        "env_config_maps": [each["name"] for each in given["envConfigMaps"]],
        "env_secrets": [each["name"] for each in given["envSecrets"]],
        "run_k8s_config": {
            "container_config": pod["containerConfig"],
            "pod_spec_config": pod["podSpecConfig"],
            "pod_template_spec_metadata": pod["podTemplateSpecMetadata"],
            "job_spec_config": pod["jobSpecConfig"],
        },
    }


def pod(values: Any, part: Any) -> dict[str, Any]:
    """The pod of a part of the chart, with what its template adds to the values."""
    home = {"name": "dagster-instance", "mountPath": f"{values['global']['dagsterHome']}/dagster.yaml"}
    container = {
        "name": "dagster",
        "image": f"{part['image']['repository']}:{part['image']['tag']}",
        "imagePullPolicy": part["image"]["pullPolicy"],
        "securityContext": part["securityContext"],
        "envFrom": [
            *({"configMapRef": each} for each in part["envConfigMaps"]),
            *({"secretRef": each} for each in part["envSecrets"]),
        ],
        "resources": part["resources"],
        "volumeMounts": [home | {"subPath": "dagster.yaml"}, *part["volumeMounts"]],
        **{name: part[name] for name in ("readinessProbe", "livenessProbe") if name in part},
    }
    volumes = [{"name": "dagster-instance", "configMap": {"name": "dagster-instance"}}, *part["volumes"]]
    spec = {"securityContext": part["podSecurityContext"], "containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "dagster"}, "spec": spec}
