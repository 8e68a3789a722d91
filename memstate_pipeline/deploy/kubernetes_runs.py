"""Manifests for Kubernetes in which each night is a pod: Dagster with its run launcher, and replicas that take writes.

The store is in object storage and Dagster's history in a database, so no pod has a volume that must outlive it. For
Dagster's own Helm chart, `helm` writes the values instead.
"""

from __future__ import annotations

from textwrap import indent

from memstate_core import __version__
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_pipeline.deploy.cluster_access import ACCESS
from memstate_pipeline.deploy.cluster_parts import REPLICAS, filled
from memstate_pipeline.instance_settings import dagster_settings
from memstate_pipeline.pod_settings import (
    IMAGE_VARIABLE,
    INSTANCE_MAP,
    MOUNTS,
    NAMESPACE_VARIABLE,
    VOLUMES,
)

_MANIFESTS = """\
---
# Nights as pods, of a store in object storage: Dagster, whose schedule begins them, and replicas that serve the store
# and take writes. Replace memstate:{version} by the name of the image in your registry, and set the URLs. First the
# secrets, and the settings of the store:
#   kubectl create secret generic memstate --from-literal=MEMSTATE_API_KEY=… \\
#     --from-literal={postgres}=postgresql+psycopg2://USER:PASSWORD@HOST:5432/DATABASE \\
#     --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…
#   kubectl create configmap memstate-settings --from-file=memstate.toml
#   kubectl apply --filename kubernetes.workers.yaml
# Replicas restart until the first night has published. To run one at once:
#   kubectl exec deployment/memstate-dagster --container daemon -- memstate maintain
apiVersion: v1
kind: ConfigMap
metadata:
  name: memstate
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: settings}
data:
  MEMSTATE_STORE_URL: s3://bucket/store
  MEMSTATE_STORE_NIGHTS_AT_ONCE: "1"
  MEMSTATE_STORE_CHECKOUT_MIB: "1" # with several at once, the pod of a night fetches the snapshots of its shard alone
  MEMSTATE_PUBLISH_URL: s3://bucket/memory
  MEMSTATE_PUBLISH_ACCEPT_WRITES: "true"
  AWS_REGION: us-east-1
  {image_variable}: memstate:{version}
---
# Dagster's settings, with the shape of the pods of nights: what you edit here stays.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {instance_map}
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: dagster}
data:
  dagster.yaml: |
{settings}{access}---
# One pod, since two daemons would request each night twice; so no disruption budget, which would hold up every drain.
# Its home is a checkout that follows the store. Nights that are in progress go on while it moves.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: memstate-dagster
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: dagster}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: dagster}
  template:
    metadata:
      labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: dagster}
    spec:
      serviceAccountName: memstate-dagster
      automountServiceAccountToken: true
{pod with a token}      initContainers:
        - name: init
          command: [sh, -c, "cp /instance/dagster.yaml /data/dagster/dagster.yaml && exec memstate init"]
{checkout}            - {name: instance, mountPath: /instance, readOnly: true}
{namespace}          resources:
            requests: {cpu: 100m, memory: 512Mi}
      containers:
        # It asks for no password, so it listens in the pod alone: kubectl port-forward deployment/memstate-dagster 3000
        - name: webserver
          command:
            - dagster-webserver
            - -m
            - memstate_pipeline.definitions
            - --host
            - 127.0.0.1
            - --port
            - "3000"
            - --log-format
            - json
{checkout}{namespace}          resources:
            requests: {cpu: 100m, memory: 512Mi}
            limits: {memory: 2Gi}
          readinessProbe:
{answers}            periodSeconds: 10
          livenessProbe:
{answers}            periodSeconds: 30
            initialDelaySeconds: 120
        - name: daemon
          command: [dagster-daemon, run, -m, memstate_pipeline.definitions, --log-format, json]
{checkout}{namespace}          resources:
            requests: {cpu: 250m, memory: 1Gi}
            limits: {memory: 2Gi}
          livenessProbe:
            exec:
              command: [dagster-daemon, liveness-check]
            initialDelaySeconds: 120
            periodSeconds: 120
            timeoutSeconds: 60
      volumes:
        - name: instance
          configMap: {name: {instance_map}}
        - name: home
          emptyDir: {sizeLimit: 20Gi}
{volumes}"""
_CHECKOUT = "{container}" + "".join(
    f"{' ' * 12}{mount}\n" for mount in MOUNTS.splitlines() if "dagster" in mount or "settings" in mount
)
"""A container with the mounts of a checkout; further mounts may follow."""
_NAMESPACE = f"""\
          env:
            - name: {NAMESPACE_VARIABLE}
              valueFrom: {{fieldRef: {{fieldPath: metadata.namespace}}}}
"""
_ANSWERS = """\
            exec:
              command:
                - python
                - -c
                - import urllib.request as web; web.urlopen('http://127.0.0.1:3000/server_info', timeout=4)
            timeoutSeconds: 10
"""


def run_files() -> dict[str, str]:
    """The manifests, in one file."""
    chosen = {POSTGRES_VARIABLE: "x", IMAGE_VARIABLE: "x", NAMESPACE_VARIABLE: "x"}
    values = {
        "{access}": ACCESS,
        "{postgres}": POSTGRES_VARIABLE,
        "{image_variable}": IMAGE_VARIABLE,
        "{version}": __version__,
        "{instance_map}": INSTANCE_MAP,
        "{settings}": indent(dagster_settings(chosen), " " * 4),
        "{volumes}": indent(VOLUMES, " " * 8),
        "{checkout}": _CHECKOUT,
        "{namespace}": _NAMESPACE,
        "{answers}": _ANSWERS,
    }
    manifests = _MANIFESTS
    for name, text in values.items():
        manifests = manifests.replace(name, text)
    return {"kubernetes.workers.yaml": filled(manifests + REPLICAS)}
