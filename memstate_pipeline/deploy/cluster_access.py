"""The accounts of pods where each night is one, and what they may do in the cluster.

Dagster's pod makes jobs, and reads why one failed. Pods of nights may do nothing.
"""

from __future__ import annotations

from memstate_pipeline.pod_settings import RUN_ACCOUNT

ACCESS = f"""\
---
# The account of the pods of nights, which ask nothing of the cluster.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {RUN_ACCOUNT}
automountServiceAccountToken: false
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: memstate-dagster
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: memstate-dagster
rules:
  - apiGroups: [batch]
    resources: [jobs, jobs/status]
    verbs: [create, get, list, watch, delete]
  - apiGroups: [""]
    resources: [pods, pods/log, events]
    verbs: [get, list, watch]
  - apiGroups: [""]
    resources: [pods]
    verbs: [delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: memstate-dagster
subjects:
  - {{kind: ServiceAccount, name: memstate-dagster}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: memstate-dagster}}
"""
