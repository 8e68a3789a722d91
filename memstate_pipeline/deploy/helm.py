"""Values for Dagster's own Helm chart (`dagster/dagster`), for those who install Dagster by it.

What memstate otherwise writes into `dagster.yaml` is the chart's `additionalInstanceConfig`, so its own switches for
the same parts are off. Runs are shaped by its run launcher alone, as in the manifests (`kubernetes_runs`).
"""

from __future__ import annotations

from textwrap import indent

from memstate_core import __version__
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_pipeline.instance_settings import BASE_SETTINGS
from memstate_pipeline.pod_settings import CONTAINER_SECURITY, MOUNTS, NAMES, RUN_POD, SECURITY, VOLUMES

_VALUES = """\
---
# Values for Dagster's Helm chart, in the version of Dagster that the image has: web server, daemon, and a server of the
# definitions, with a pod for each night. Set the image and the database below. The Secret and the ConfigMaps are those
# of kubernetes.workers.yaml, with the password of the database once more, since the chart takes it from there:
#   kubectl create secret generic memstate --from-literal=MEMSTATE_API_KEY=… \\
#     --from-literal={postgres}=postgresql+psycopg2://USER:PASSWORD@HOST:5432/DATABASE \\
#     --from-literal=postgresql-password=PASSWORD \\
#     --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…
#   kubectl create configmap memstate-settings --from-file=memstate.toml
#   kubectl apply --filename kubernetes.workers.yaml \\
#     --selector 'app.kubernetes.io/component in (settings, replica)'
#   helm repo add dagster https://dagster-io.github.io/helm
#   helm install dagster dagster/dagster --version VERSION_OF_DAGSTER --values helm.values.yaml
global:
  dagsterHome: /data/dagster
  postgresqlSecretName: {names}

postgresql: # the chart's own database is off
  enabled: false
  postgresqlHost: database.example.com
  postgresqlUsername: memstate
  postgresqlDatabase: memstate
  service: {port: 5432}
generatePostgresqlPasswordSecret: false

telemetry: {enabled: false}

dagsterWebserver:
  image: &image {repository: memstate, tag: "{version}", pullPolicy: IfNotPresent}
  # It asks for no password: kubectl port-forward service/dagster-dagster-webserver 3000
  service: {type: ClusterIP, port: 3000}
  envConfigMaps: &config_maps [{name: {names}}]
  envSecrets: &secrets [{name: {names}}]
  podSecurityContext: &pod
{security}  securityContext: &container
{container_security}  volumeMounts: &mounts
{mounts}  volumes: &volumes
    - name: home
      emptyDir: {sizeLimit: 20Gi}
{volumes}  resources:
    requests: {cpu: 100m, memory: 512Mi}
    limits: {memory: 2Gi}
  readinessProbe:
    httpGet: {path: /server_info, port: 3000}
    periodSeconds: 20
    timeoutSeconds: 10

dagsterDaemon:
  enabled: true
  image: *image
  envConfigMaps: *config_maps
  envSecrets: *secrets
  podSecurityContext: *pod
  securityContext: *container
  volumeMounts: *mounts
  volumes: *volumes
  resources:
    requests: {cpu: 250m, memory: 1Gi}
    limits: {memory: 2Gi}
  livenessProbe:
    exec: {command: [dagster-daemon, liveness-check]}
    initialDelaySeconds: 120
    periodSeconds: 120
    timeoutSeconds: 60
  runCoordinator: {enabled: false} # Dagster's default, a queue, with the limits below
  runMonitoring: {enabled: false} # below
  runRetries: {enabled: false} # below

dagster-user-deployments:
  enabled: true
  enableSubchart: true
  deployments:
    - name: memstate
      image: *image
      dagsterApiGrpcArgs: [-m, memstate_pipeline.definitions]
      port: 3030
      includeConfigInLaunchedRuns: {enabled: false} # pods of nights have the shape below
      envConfigMaps: *config_maps
      envSecrets: *secrets
      podSecurityContext: *pod
      securityContext: *container
      volumeMounts: *mounts
      volumes: *volumes
      resources: # schedule and sensors are evaluated here
        requests: {cpu: 250m, memory: 1Gi}
        limits: {memory: 2Gi}

runLauncher:
  type: K8sRunLauncher
  config:
    k8sRunLauncher:
      imagePullPolicy: IfNotPresent
      loadInclusterConfig: true
      envConfigMaps: *config_maps
      envSecrets: *secrets
      envVars: []
      runK8sConfig:
{run_pod}
# What `memstate init` writes into dagster.yaml. For several nights at once set the two limits to store.nights_at_once,
# and limit each shard to one, as kubernetes.workers.yaml says.
additionalInstanceConfig:
{settings}"""
_OF_CHART = "# Created by memstate; edit as you like.\ntelemetry:\n  enabled: false\n"
"""The part of the settings that the chart writes by itself."""


def helm_files() -> dict[str, str]:
    """The values, in one file."""
    parts = {
        "{postgres}": POSTGRES_VARIABLE,
        "{names}": NAMES,
        "{version}": __version__,
        "{security}": indent(SECURITY, " " * 4),
        "{container_security}": indent(CONTAINER_SECURITY, " " * 4),
        "{mounts}": indent(MOUNTS, " " * 4),
        "{volumes}": indent(VOLUMES, " " * 4),
        "{run_pod}": indent(RUN_POD, " " * 8),
        "{settings}": indent(BASE_SETTINGS.removeprefix(_OF_CHART), " " * 2),
    }
    values = _VALUES
    for name, text in parts.items():
        values = values.replace(name, text)
    return {"helm.values.yaml": values}
