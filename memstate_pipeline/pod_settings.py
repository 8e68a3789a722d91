"""How a run becomes a pod: the part of `dagster.yaml` that has Kubernetes execute runs, and the shape of their pods.

The shape is written once, for `dagster.yaml` and for the values of Dagster's Helm chart. A pod has a volume of its own
for the checkout of the store, which ends with it. It gets no credentials of the cluster: a run asks the database and
the object storage, never the API of Kubernetes.
"""

from __future__ import annotations

import re
from textwrap import indent

IMAGE_VARIABLE, NAMESPACE_VARIABLE = "DAGSTER_K8S_PIPELINE_RUN_IMAGE", "DAGSTER_K8S_PIPELINE_RUN_NAMESPACE"
"""The image of the pods, and the namespace in which they are made; both together choose this launcher."""

LAUNCHER = "K8sRunLauncher"

NAMES = "memstate"
"""The name of the ConfigMap and of the Secret whose entries are environment variables of every pod."""

SETTINGS_MAP = "memstate-settings"
"""The ConfigMap that holds `memstate.toml`, which every pod mounts."""

INSTANCE_MAP, RUN_ACCOUNT = "memstate-dagster", "memstate-run"
"""The ConfigMap that holds `dagster.yaml`, and the service account of the pods, which has no rights."""

SECURITY = """\
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: {type: RuntimeDefault}
"""
"""The security context of a pod."""
CONTAINER_SECURITY = """\
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
"""
"""The security context of a container."""
MOUNTS = """\
- {name: home, mountPath: /data}
- {name: dagster, mountPath: /data/dagster}
- {name: settings, mountPath: /data/memstate.toml, subPath: memstate.toml, readOnly: true}
- {name: tmp, mountPath: /tmp}
"""
"""What a container that has a checkout mounts."""
VOLUMES = f"""\
- name: dagster
  emptyDir: {{}}
- name: settings
  configMap: {{name: {SETTINGS_MAP}}}
- name: tmp
  emptyDir: {{}}
"""
"""The volumes beside that of the checkout."""

RUN_POD = f"""\
containerConfig:
  resources: # starting points: a night needs memory for its largest shard
    requests: {{cpu: "1", memory: 2Gi}}
    limits: {{memory: 4Gi}}
  securityContext:
{indent(CONTAINER_SECURITY, " " * 4)}  volumeMounts:
{indent(MOUNTS, " " * 4)}podSpecConfig:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 120
  securityContext:
{indent(SECURITY, " " * 4)}  volumes:
    - name: home # the checkout of the store, and what the night writes
      ephemeral:
        volumeClaimTemplate:
          spec:
            accessModes: [ReadWriteOnce]
            resources:
              requests: {{storage: 20Gi}}
{indent(VOLUMES, " " * 4)}podTemplateSpecMetadata:
  annotations: # a night that is moved is made again from its start
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
jobSpecConfig:
  ttlSecondsAfterFinished: 86400
"""
"""The shape of the pods, with the keys of the Helm chart."""

_SNAKE = re.compile(r"^(\w+):", re.MULTILINE)


def _snake_case(found: re.Match[str]) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", found[1]) + ":"


POD_SETTINGS = f"""\
run_launcher: # each run is a pod of Kubernetes, with a checkout of its own
  module: dagster_k8s.launcher
  class: {LAUNCHER}
  config:
    job_image: {{env: {IMAGE_VARIABLE}}}
    job_namespace: {{env: {NAMESPACE_VARIABLE}}}
    load_incluster_config: true
    service_account_name: {RUN_ACCOUNT}
    instance_config_map: {INSTANCE_MAP}
    dagster_home: /data/dagster
    env_config_maps: [{NAMES}]
    env_secrets: [{NAMES}]
    run_k8s_config:
{indent(_SNAKE.sub(_snake_case, RUN_POD), " " * 6)}"""
"""The part of `dagster.yaml`."""
