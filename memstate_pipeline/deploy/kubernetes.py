"""Manifests for Kubernetes: one pod that writes, on a volume of its own, and any number of replicas.

The pod that writes is one, since its store is a folder: Dagster and the API are containers beside each other on it. A
store in object storage has its nights in pods of their own (`kubernetes_runs`).
"""

from __future__ import annotations

from memstate_pipeline.deploy.cluster_parts import REPLICAS, filled

_MANIFESTS = """\
---
# The store that writes, and replicas that serve it. The image is that of the Dockerfile beside this file, in a registry
# that the cluster reads; set its name below, the URL and the size of the volume. First the credentials of the object
# storage, and the key of the API:
#   kubectl create secret generic memstate --from-literal=MEMSTATE_API_KEY=… \\
#     --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…
#   kubectl apply --filename kubernetes.yaml
# Replicas restart until the first night has published. To run one at once:
#   kubectl exec statefulset/memstate --container daemon -- memstate maintain
apiVersion: v1
kind: ConfigMap
metadata:
  name: memstate
data:
  MEMSTATE_PUBLISH_URL: s3://bucket/memory
  MEMSTATE_PUBLISH_ACCEPT_WRITES: "true"
  MEMSTATE_PUBLISH_WRITER_URL: http://memstate:8420
  AWS_REGION: us-east-1
---
# The one pod that writes: web server and daemon of Dagster, and the API of the store. Requests are starting points; a
# night needs memory for the largest shard.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: memstate
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: store}
spec:
  replicas: 1
  serviceName: memstate
  selector:
    matchLabels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: store}
  template:
    metadata:
      labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: store}
    spec:
      terminationGracePeriodSeconds: 120
{pod}      initContainers:
        - name: init
          command: [memstate, init]
{container}          resources:
            requests: {cpu: 100m, memory: 512Mi}
      containers:
        # It asks for no password, so it listens in the pod alone: kubectl port-forward statefulset/memstate 3000
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
{container}          resources:
            requests: {cpu: 100m, memory: 512Mi}
          livenessProbe:
            exec:
              command:
                - python
                - -c
                - import urllib.request as web; web.urlopen('http://127.0.0.1:3000/server_info', timeout=4)
            initialDelaySeconds: 60
            periodSeconds: 30
            timeoutSeconds: 10
        - name: daemon
          command: [dagster-daemon, run, -m, memstate_pipeline.definitions, --log-format, json]
{container}          resources:
            requests: {cpu: 500m, memory: 2Gi}
          livenessProbe:
            exec:
              command: [dagster-daemon, liveness-check]
            initialDelaySeconds: 120
            periodSeconds: 120
            timeoutSeconds: 60
        # It takes writes before the first night has published, so it is ready as soon as it answers.
        - name: api
          command: [memstate, serve, --host, 0.0.0.0]
{store_server}      volumes:
        - name: tmp
          emptyDir: {}
  volumeClaimTemplates:
    - metadata:
        name: home
      spec:
        accessModes: [ReadWriteOncePod]
        resources:
          requests: {storage: 20Gi}
---
apiVersion: v1
kind: Service
metadata:
  name: memstate
spec:
  selector: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: store}
  ports:
    - {name: http, port: 8420, targetPort: http}
"""


def cluster_files() -> dict[str, str]:
    """The manifests, in one file."""
    return {"kubernetes.yaml": filled(_MANIFESTS + REPLICAS)}
