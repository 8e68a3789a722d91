"""An image and its containers: web server, daemon and query API on one home, and replicas."""

from __future__ import annotations

_DOCKERFILE = """\
# An image of memstate. Put its wheel beside this file first, from a checkout:
#   pip wheel --no-deps -w HOME/deploy .
# With a constraints.txt beside this file, the versions are those that it names; without one, the newest ones.
# The base is pinned by version; to pin its bytes, add the digest that `docker buildx imagetools inspect` shows.
FROM python:3.12.11-slim-bookworm AS build
ARG EXTRAS=cloud,serve
WORKDIR /build
COPY memstate-*.whl constraints.tx[t] ./
RUN python -m venv /opt/memstate \\
    && touch constraints.txt \\
    && for wheel in memstate-*.whl; do \\
        /opt/memstate/bin/pip install --no-cache-dir --constraint constraints.txt "${wheel}[${EXTRAS}]"; done

FROM python:3.12.11-slim-bookworm
RUN useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin memstate \\
    && install --directory --owner=1000 --group=1000 --mode=0700 /data /published
COPY --from=build /opt/memstate /opt/memstate
ENV PATH=/opt/memstate/bin:$PATH \\
    HOME=/tmp \\
    USER=memstate \\
    MEMSTATE_HOME=/data \\
    DAGSTER_HOME=/data/dagster
USER 1000:1000
VOLUME /data
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \\
    CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8420/healthz', timeout=4)"]
CMD ["memstate", "serve", "--host", "0.0.0.0"]
"""
_COMPOSE = """\
---
# `docker compose up --detach` in this folder, after the wheel is beside the Dockerfile. The API needs a key first:
#   docker compose run --rm api memstate keys add NAME
# The containers use the settings of the home above this folder, so start no `memstate ui` beside them. They run as
# user 1000; if the home belongs to another, set MEMSTATE_UID and MEMSTATE_GID to its numbers.
name: memstate

x-memstate: &memstate
  image: memstate
  build: .
  user: "${MEMSTATE_UID:-1000}:${MEMSTATE_GID:-1000}"
  init: true
  restart: unless-stopped
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  tmpfs: [/tmp]
  stop_grace_period: 60s
  volumes:
    - type: bind
      source: ..
      target: /data

services:
  webserver:
    <<: *memstate
    command:
      - dagster-webserver
      - -m
      - memstate_pipeline.definitions
      - --host
      - 0.0.0.0
      - --port
      - "3000"
      - --log-format
      - json
    # It asks for no password, so only this machine reaches it.
    ports: ["127.0.0.1:3000:3000"]
    healthcheck:
      test:
        - CMD
        - python
        - -c
        - import urllib.request as web; web.urlopen('http://127.0.0.1:3000/server_info', timeout=4)
      start_period: 60s
  daemon:
    <<: *memstate
    command: [dagster-daemon, run, -m, memstate_pipeline.definitions, --log-format, json]
    healthcheck:
      test: [CMD, dagster-daemon, liveness-check]
      timeout: 30s
      start_period: 60s
  api:
    <<: *memstate
    command: [memstate, serve, --host, 0.0.0.0]
    ports: ["127.0.0.1:8420:8420"]
"""


_REPLICAS = """\
---
# Replicas on this host, beside the containers of compose.yaml, which publish for them and fetch what they accept:
#   docker compose --file compose.yaml --file compose.replicas.yaml up --detach
# They need a key: put MEMSTATE_API_KEY=… into the file .env of this folder. They share the volume `published`, which
# belongs to user 1000. For replicas on other hosts, put MEMSTATE_PUBLISH_URL=s3://bucket/prefix and the credentials of
# the object storage into .env as well, and start the service `replica` alone there: up --detach replica.
name: memstate

x-publication: &publication
  MEMSTATE_PUBLISH_URL: "${MEMSTATE_PUBLISH_URL:-file:///published}"
  MEMSTATE_PUBLISH_ACCEPT_WRITES: "true"
  AWS_REGION:
  AWS_ACCESS_KEY_ID:
  AWS_SECRET_ACCESS_KEY:

x-writer: &writer
  environment:
    <<: *publication
  volumes: ["published:/published"]

services:
  webserver: *writer
  daemon: *writer
  api: *writer
  replica:
    image: memstate
    build: .
    init: true
    restart: unless-stopped
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    tmpfs: [/tmp]
    stop_grace_period: 60s
    command:
      - memstate
      - serve
      - --host
      - 0.0.0.0
      - --replica-of
      - "${MEMSTATE_PUBLISH_URL:-file:///published}"
      - --accept-writes
    environment:
      <<: *publication
      MEMSTATE_API_KEY: "${MEMSTATE_API_KEY:?put a key into .env}"
    volumes: ["published:/published", "replica:/data"]
    deploy:
      replicas: 2
    ports: ["127.0.0.1:8421-8429:8420"]
    healthcheck:
      test: [CMD, python, -c, "import urllib.request as web; web.urlopen('http://127.0.0.1:8420/readyz', timeout=4)"]
      start_period: 60s

volumes:
  published:
  replica:
"""


def container_files() -> dict[str, str]:
    """The recipe of the image, the services that share one home as their volume, and replicas beside them."""
    return {"Dockerfile": _DOCKERFILE, "compose.yaml": _COMPOSE, "compose.replicas.yaml": _REPLICAS}
