"""The reference of the HTTP API, read from the OpenAPI document that the server publishes."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from docs.make.markdown import code, one_line, paragraphs, slug, table
from docs.make.schemas import attributes, kind_of, summary
from memstate_core.run.store import open_store
from memstate_core.serve.app import api
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service

Json = dict[str, Any]
_RESPONSE_NAMES = {"application/json": "JSON", "text/plain": "plain text"}


@cache
def openapi() -> Json:
    """The OpenAPI document of a server with default options."""
    with tempfile.TemporaryDirectory() as folder:
        return api(Service(open_store(Path(folder), {}), Options())).openapi()


def routes() -> str:
    """An overview of all routes, then each with its parameters, body and answer."""
    document = openapi()
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    overview = table(
        ("Route", "Does"),
        [(f"[`{name}`](#{slug(name)})", summary(operation.get("description"))) for name, operation in operations],
    )
    return paragraphs(overview, *(_route(name, operation) for name, operation in operations))


def schemas() -> str:
    """Every JSON object that a body or an answer is made of, with its keys."""
    parts = openapi()["components"]["schemas"]
    return paragraphs(*(_schema(name, schema) for name, schema in sorted(parts.items())))


def _route(name: str, operation: Json) -> str:
    parameters = table(
        ("Parameter", "In", "Type", "Required", "Meaning"),
        [
            (
                code(one["name"]),
                one["in"],
                kind_of(one["schema"]),
                _yes(one.get("required")),
                one.get("description", ""),
            )
            for one in operation.get("parameters", ())
        ],
    )
    body = operation.get("requestBody", {}).get("content", {})
    takes = [kind_of(content["schema"]) for content in body.values()]
    answers = [_answer(status, answer) for status, answer in operation["responses"].items()]
    return paragraphs(
        f"### {name}",
        one_line(operation.get("description")),
        parameters,
        f"Body: {', '.join(takes)}." if takes else "",
        table(("Status", "Answer"), answers),
    )


def _answer(status: str, answer: Json) -> tuple[str, str]:
    described = [
        kind_of(content["schema"]) if content.get("schema") else _RESPONSE_NAMES.get(kind, kind)
        for kind, content in answer.get("content", {}).items()
    ]
    named = "any error" if status == "default" else status
    return named, ", ".join(described) or answer["description"]


def _schema(name: str, schema: Json) -> str:
    meanings = attributes(schema.get("description"))
    required = schema.get("required", ())
    rows = [
        (code(key), kind_of(value), _yes(key in required), value.get("description") or meanings.get(key, ""))
        for key, value in schema.get("properties", {}).items()
    ]
    return paragraphs(
        f"### {name}", summary(schema.get("description")), table(("Key", "Type", "Required", "Meaning"), rows)
    )


def _yes(required: object) -> str:
    return "yes" if required else ""
