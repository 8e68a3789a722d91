"""An image and its containers: web server, daemon and query API on one home."""

from __future__ import annotations

_DOCKERFILE = """\
# An image of memstate. Put its wheel beside this file first, from a checkout:
#   pip wheel --no-deps -w HOME/deploy .
FROM python:3.12.11-slim-bookworm AS build
WORKDIR /build
COPY memstate-*.whl ./
RUN python -m venv /opt/memstate \\
    && for wheel in memstate-*.whl; do /opt/memstate/bin/pip install --no-cache-dir "${wheel}[serve]"; done

FROM python:3.12.11-slim-bookworm
RUN useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin memstate
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


def container_files() -> dict[str, str]:
    """The recipe of the image, and the services that share one home as their volume."""
    return {"Dockerfile": _DOCKERFILE, "compose.yaml": _COMPOSE}
