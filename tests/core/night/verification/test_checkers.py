"""Each checker, with every status that it can give; files and a repository are real."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.provenance import NOTED, NOTES, noted
from memstate_core.night.verification.citations import check_citations
from memstate_core.night.verification.commits import check_commits
from memstate_core.night.verification.files import check_files
from memstate_core.night.verification.links import check_links

HASH = hashlib.sha256(b"one").hexdigest()
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def notes(**given: str) -> pl.DataFrame:
    row = dict.fromkeys(NOTED) | {"evidence_id": "e", "observation_id": "o", "scope": "user:a"} | given
    return pl.DataFrame([row], schema=NOTED)


def outcome(findings: pl.DataFrame) -> tuple[str, str]:
    assert findings["target"].to_list() == ["observation:o"]
    return findings["status"].item(), findings["message"].item()


def evidence(*payloads: str, **more: Any) -> pl.LazyFrame:
    ids = [f"o{number}" for number in range(len(payloads))]
    columns = {"evidence_id": ids, "observation_id": ids, "scope": ["user:a"] * len(ids), "payload_json": payloads}
    return pl.LazyFrame(columns | {"topic_kind": ["memory:resource"] * len(ids)} | more)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside a folder that is not allowed."""
    (tmp_path / "root" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "a.txt").write_bytes(b"one")
    (tmp_path / "outside.txt").write_bytes(b"one")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "outside.txt")
    (tmp_path / "root" / "in").symlink_to(tmp_path / "root" / "a.txt")
    os.mkfifo(tmp_path / "root" / "pipe")
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("file", "sha256", "status", "said"),
    [
        ("a.txt", HASH, "passed", "has the noted hash"),
        ("a.txt", HASH.upper(), "passed", "has the noted hash"),
        ("in", HASH, "passed", "has the noted hash"),
        ("a.txt", None, "passed", "no hash was noted"),
        ("a.txt", "0" * 64, "failed", "file changed: "),
        ("gone.txt", HASH, "failed", "file missing: "),
        ("a.txt/deeper", HASH, "failed", "file missing: "),
        ("out", HASH, "unknown", "outside the folders"),
        ("../outside.txt", HASH, "unknown", "outside the folders"),
        ("/etc/hostname", HASH, "unknown", "outside the folders"),
        ("deep", HASH, "warning", "no regular file"),
        ("pipe", HASH, "warning", "no regular file"),
        ("a\0b", HASH, "warning", "cannot be read"),
    ],
)
def test_a_file_is_compared_with_the_noted_hash(root, file, sha256, status, said):
    found = check_files(notes(workspace=str(root), file=file, sha256=sha256), [str(root)], 100)
    assert outcome(found)[0] == status
    assert said in outcome(found)[1]


def test_a_file_is_unknown_if_it_is_large_or_relative_to_nothing(root):
    here = str(root)
    assert outcome(check_files(notes(workspace=here, file="a.txt"), [here], 2))[0] == "unknown"
    assert outcome(check_files(notes(file="a.txt"), [here], 100))[0] == "unknown"


def test_without_roots_no_file_is_looked_at(root):
    assert check_files(notes(workspace=str(root), file="a.txt"), [], 100).is_empty()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit on `main`, whose configuration names a program to run."""
    made = tmp_path_factory.mktemp("repository")
    for command in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(made), *command], check=True, env=os.environ | GIT)
    return made


def test_a_branch_and_a_commit_are_looked_up_in_the_named_repository(repository):
    def found(**given: str) -> list[tuple[str, str]]:
        rows = check_commits(notes(workspace="/work", **given), {"/work": str(repository)})
        return list(rows.select("check", "status").iter_rows())

    head = subprocess.run(["git", "-C", str(repository), "rev-parse", "HEAD"], capture_output=True, check=True)
    commit = head.stdout.decode().strip()
    assert found(branch="main", commit=commit) == [("branch", "passed"), ("commit", "passed")]
    assert found(branch="gone", commit=commit[:8]) == [("branch", "failed"), ("commit", "passed")]
    assert found(commit="0" * 40) == [("commit", "failed")]
    assert found(commit="--help") == [("commit", "warning")]
    assert found(branch="a\0b") == [("branch", "unknown")]


def test_a_repository_that_is_none_or_slow_or_not_named_decides_nothing(tmp_path, repository):
    asked = notes(workspace="/work", branch="main")
    assert check_commits(asked, {"/work": str(tmp_path / "gone")})["status"].to_list() == ["unknown"]
    assert check_commits(asked, {"/work": str(tmp_path)})["status"].to_list() == ["unknown"]
    assert check_commits(asked, {"/work": str(repository)}, seconds=0.0)["status"].to_list() == ["unknown"]
    assert check_commits(asked, {"/other": str(repository)}).is_empty()
    assert check_commits(asked, {}).is_empty()


def test_a_citation_fails_if_the_ledger_lacks_what_is_cited():
    cites = '{"memory":{"sources":%s,"type":"fact"}}'
    found = check_citations(
        evidence(cites % '["o1"]', cites % '["o0","gone"]', '{"memory":{"sources":[1],"type":"x"}}')
    )
    assert dict(found.select("target", "status").iter_rows()) == {
        "observation:o0": "passed",
        "observation:o1": "failed",
    }
    assert found.filter(status="failed")["message"].item() == "cited and not in the ledger: gone"


def test_a_citation_of_another_scope_is_missing():
    rows = evidence('{"memory":{"sources":["o1"],"type":"relation"}}', "{}", scope=["user:a", "user:b"])
    assert check_citations(rows)["status"].to_list() == ["failed"]


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("https://example.org/a", "unknown"),
        ("mailto:a@example.org", "unknown"),
        ("https://", "warning"),
        ("http://[::1", "warning"),
        ("https://a b.example/", "warning"),
    ],
)
def test_a_link_is_judged_by_its_form_alone(uri, status):
    assert check_links(evidence(json.dumps({"memory": {"uri": uri}})))["status"].to_list() == [status]


def test_what_is_no_link_is_left_alone():
    assert check_links(evidence('{"memory":{"uri":"notes/a"}}', '{"memory":{"uri":"file:///a"}}')).is_empty()


def test_notes_stand_at_the_top_of_a_record_or_in_its_metadata_or_details():
    rows = noted(
        evidence(
            '{"gitBranch":"main"}',
            '{"metadata":{"gitCommit":"ab12"}}',
            '{"details":{"filePath":"a.txt","contentSha256":null}}',
            '{"text":"gitBranch"}',
            '{"gitBranch":" "}',
        )
    )
    assert rows["observation_id"].to_list() == ["o0", "o1", "o2"]
    assert [
        {name: value for name, value in row.items() if value is not None} for row in rows.select(*NOTES).to_dicts()
    ] == [
        {"branch": "main"},
        {"commit": "ab12"},
        {"file": "a.txt"},
    ]
