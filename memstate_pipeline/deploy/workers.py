"""Containers of one host that share a store in object storage: workers, and what they need beside the home."""

from __future__ import annotations

from memstate_pipeline.instance_settings import WORKER

_COMPOSE = """\
---
# Nights by workers on this host, beside the containers of compose.yaml: a database for Dagster's history, a broker,
# object storage with a bucket, and two workers with homes of their own. First put into the file .env of this folder,
# which only its owner should be able to read, four values of letters and digits:
#   DATABASE_PASSWORD=…
#   BROKER_PASSWORD=…
#   AWS_ACCESS_KEY_ID=…
#   AWS_SECRET_ACCESS_KEY=…
# Then:
#   docker compose --file compose.yaml --file compose.workers.yaml up --detach --build
# For object storage elsewhere, set MEMSTATE_STORE_URL and AWS_ENDPOINT_URL there, too.
name: memstate

x-image: &image
  image: memstate-cluster
  build:
    context: .
    args:
      EXTRAS: cluster,serve

x-shared: &shared
  DAGSTER_POSTGRES_URL: "postgresql+psycopg2://memstate:${DATABASE_PASSWORD:?put it into .env}@database:5432/memstate"
  CELERY_BROKER_URL: "redis://:${BROKER_PASSWORD:?put it into .env}@broker:6379/0"
  CELERY_RESULT_BACKEND: "redis://:${BROKER_PASSWORD:?put it into .env}@broker:6379/0"
  MEMSTATE_STORE_URL: "${MEMSTATE_STORE_URL:-s3://memstate/store}"
  AWS_ENDPOINT_URL: "${AWS_ENDPOINT_URL:-http://objects:7070}"
  AWS_ALLOW_HTTP: "true"
  AWS_REGION: "${AWS_REGION:-us-east-1}"
  AWS_ACCESS_KEY_ID: "${AWS_ACCESS_KEY_ID:?put it into .env}"
  AWS_SECRET_ACCESS_KEY: "${AWS_SECRET_ACCESS_KEY:?put it into .env}"

x-started: &started
  database: {condition: service_healthy}
  broker: {condition: service_healthy}
  objects: {condition: service_healthy}

x-machine: &machine
  <<: *image
  environment: *shared
  depends_on:
    <<: *started
    settings: {condition: service_completed_successfully}

x-other: &other
  restart: unless-stopped
  security_opt: ["no-new-privileges:true"]

services:
  webserver: *machine
  daemon: *machine
  api: *machine
  # Has Dagster's settings of the home name the database and the broker, unless somebody edited them.
  settings:
    <<: *image
    environment: *shared
    user: "${MEMSTATE_UID:-1000}:${MEMSTATE_GID:-1000}"
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    tmpfs: [/tmp]
    command: [memstate, init]
    healthcheck: {disable: true}
    volumes:
      - type: bind
        source: ..
        target: /data
  # Each of them has a volume of its own as home.
  worker:
    <<: *image
    environment: *shared
    depends_on: *started
    init: true
    restart: unless-stopped
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    tmpfs: [/tmp]
    stop_grace_period: 120s
    command:
      - sh
      - -c
      - >-
        memstate init --json > /tmp/init.json
        && exec {worker}
    volumes:
      - type: bind
        source: ../memstate.toml
        target: /data/memstate.toml
        read_only: true
    deploy:
      replicas: 2
    healthcheck:
      test: [CMD-SHELL, "celery -A dagster_celery.app inspect ping --destination celery@$$HOSTNAME"]
      interval: 60s
      timeout: 30s
      start_period: 60s
  database:
    <<: *other
    image: postgres:17.6-alpine
    environment:
      POSTGRES_USER: memstate
      POSTGRES_DB: memstate
      POSTGRES_PASSWORD: "${DATABASE_PASSWORD:?put it into .env}"
    volumes: ["database:/var/lib/postgresql/data"]
    healthcheck:
      test: [CMD, pg_isready, --username, memstate]
      start_period: 30s
  broker:
    <<: *other
    image: redis:8.0.3-alpine
    environment:
      REDISCLI_AUTH: "${BROKER_PASSWORD:?put it into .env}"
    command: [sh, -c, "exec redis-server --appendonly yes --requirepass $$REDISCLI_AUTH"]
    volumes: ["broker:/data"]
    healthcheck:
      test: [CMD, redis-cli, ping]
  # A folder is a bucket; from 1.8.0 on its conditional puts are atomic.
  objects:
    <<: *other
    image: versity/versitygw:v1.8.0
    environment:
      ROOT_ACCESS_KEY: "${AWS_ACCESS_KEY_ID:?put it into .env}"
      ROOT_SECRET_KEY: "${AWS_SECRET_ACCESS_KEY:?put it into .env}"
      VGW_HEALTH: /healthz
    command: [--port, ":7070", posix, /buckets]
    volumes: ["objects:/buckets/memstate"]
    healthcheck:
      test: [CMD, wget, -q, -O, /dev/null, "http://127.0.0.1:7070/healthz"]

volumes:
  database:
  broker:
  objects:
"""


def worker_files() -> dict[str, str]:
    """The services that are added to those of `compose.yaml`."""
    lines = WORKER.replace(" --", "\n        --", 1)
    return {"compose.workers.yaml": _COMPOSE.replace("{worker}", lines)}
