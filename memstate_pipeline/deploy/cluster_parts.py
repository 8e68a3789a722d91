"""Parts that the manifests for Kubernetes share: the shape of pods and containers, and the Deployment of replicas."""

from __future__ import annotations

from memstate_core import __version__

_NO_TOKEN = "      automountServiceAccountToken: false\n"
_POD = """\
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile: {type: RuntimeDefault}
"""
_CONTAINER = f"""\
          image: memstate:{__version__}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
          envFrom:
            - configMapRef: {{name: memstate}}
            - secretRef: {{name: memstate}}
          volumeMounts:
            - {{name: home, mountPath: /data}}
            - {{name: tmp, mountPath: /tmp}}
"""
_SERVER = """\
          ports:
            - {name: http, containerPort: 8420}
{container}          resources:
            requests: {cpu: 250m, memory: 1Gi}
          readinessProbe:
            httpGet: {path: {ready}, port: http}
            periodSeconds: 5
            timeoutSeconds: 5
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 30
            timeoutSeconds: 5
          startupProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 5
            failureThreshold: 60
"""
"""What follows the command of a server: its port, container and probes."""
REPLICAS = """\
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: memstate-replica
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
spec:
  replicas: 3
  selector:
    matchLabels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
    spec:
      terminationGracePeriodSeconds: 60
{pod}      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
      containers:
        - name: replica
          command:
            - memstate
            - serve
            - --host
            - 0.0.0.0
            - --replica-of
            - $(MEMSTATE_PUBLISH_URL)
            - --accept-writes
{replica_server}          lifecycle:
            preStop:
              exec:
                command: [sleep, "5"]  # until no new request is routed here
      volumes:
        - name: home  # what was fetched; a new pod fetches it again
          emptyDir: {sizeLimit: 20Gi}
        - name: tmp
          emptyDir: {}
---
apiVersion: v1
kind: Service
metadata:
  name: memstate-replica
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
spec:
  selector: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
  ports:
    - {name: http, port: 8420, targetPort: http}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: memstate-replica
  labels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app.kubernetes.io/name: memstate, app.kubernetes.io/component: replica}
"""


def filled(manifests: str) -> str:
    """Manifests with the parts that they name in braces."""
    for name, ready in (("{store_server}", "/healthz"), ("{replica_server}", "/readyz")):
        manifests = manifests.replace(name, _SERVER.replace("{ready}", ready))
    pods = {"{pod}": f"{_NO_TOKEN}{_POD}", "{pod with a token}": _POD, "{container}": _CONTAINER}
    for name, text in pods.items():
        manifests = manifests.replace(name, text)
    return manifests
