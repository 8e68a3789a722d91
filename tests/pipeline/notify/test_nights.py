"""Nights of the command line and of Dagster send notifications; trial runs and corrections send none."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import maintain
from tests.pipeline.conftest import NIGHT, Answer, run_memstate
from tests.pipeline.notify.servers import Hook, Post

pytestmark = pytest.mark.slow

SECRET = {"HOOK_SECRET": "kept quiet"}
BROKEN = '[embedding]\nmodel = "/no such \\u009b model"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    inbox = tmp_path / "home" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "one.jsonl").write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    return tmp_path / "home"


def drop_damaged(home: Path) -> None:
    """Puts a file into the inbox of which the next night warns."""
    (home / "inbox" / "cut.jsonl.gz").write_bytes(b"\x1f\x8bnot really")


def configure(home: Path, hook: Hook, post: Post | None = None, more: str = "") -> None:
    mail = f"smtp_host = '127.0.0.1'\nsmtp_port = {post.port}\nsmtp_starttls = false\n" if post else ""
    mail += "mail_from = 'memstate@example.org'\nmail_to = ['ops@example.org']\n" * bool(post)
    channel = f"[notify]\nwebhook_url = '{hook.url}'\nwebhook_secret_env = 'HOOK_SECRET'\n{mail}"
    (home / "memstate.toml").write_text(f"{channel}[ingest]\ninbox_settle_seconds = 0\n{more}")


def run(home: Path, *arguments: str) -> Answer:
    return run_memstate(home, *arguments, **SECRET)


def is_signed(hook: Hook, index: int) -> bool:
    timestamp, digest = hook.headers[index]["X-Memstate-Signature"].removeprefix("t=").split(",v1=")
    signed = timestamp.encode() + b"." + hook.bodies[index]
    return digest == hmac.new(b"kept quiet", signed, hashlib.sha256).hexdigest()


def test_nights_of_the_command_line_notify_and_never_fail_of_it(home: Path, hook: Hook, post: Post) -> None:
    configure(home, hook, post, BROKEN)
    assert run(home, "maintain", "--now", NIGHT).code == 1
    assert run(home, "maintain", "--now", NIGHT).code == 1
    (failed,) = hook.documents
    assert is_signed(hook, 0)
    assert [failed["event"], failed["shard"], failed["now"], failed["snapshot"]] == ["night_failed", "s0", NIGHT, None]
    assert (failed["problems"][0]["kind"], failed["problems"][0]["name"]) == ("error", "ModelUnavailable")
    assert "\\x9b" in failed["problems"][0]["message"]
    assert Path(failed["page"]).read_text().startswith("<!")
    assert failed["run_id"] in failed["page"]
    assert [mail["Subject"] for mail in post.messages] == ["memstate: night failed in home, shard s0"]
    faults = run(home, "notify", "--json").document["faults"]
    assert [(fault["shard"], fault["name"]) for fault in faults] == [("s0", "ModelUnavailable")]
    plan = ("plan", "--now", NIGHT, "--output", str(home.parent / "plan.json"))
    assert run(home, *plan).code == 1
    configure(home, hook, post)
    drop_damaged(home)
    assert run(home, *plan).code == 0
    assert len(hook.bodies) == 1, "a trial on a clone is no night"
    assert run(home, "maintain", "--now", NIGHT).code == 0
    assert hook.events[1:] == ["fault_ended", "night_warned"]
    assert "cut.jsonl.gz" in hook.documents[2]["problems"][0]["message"]
    hook.answers = [500] * 6
    night = run(home, "maintain", "--now", "2026-04-07T02:00:00Z")
    assert night.code == 0, "the webhook refused"
    assert "notification fault_ended was not delivered by webhook: HTTP 500" in night.stderr
    assert "s3cret" not in night.stderr
    assert len(post.messages) == 4
    doctor = {finding["name"]: finding for finding in run(home, "doctor", "--json").document}
    assert "HTTP 500" in doctor["notifications"]["detail"]
    assert not doctor["notifications"]["ok"]
    hook.answers = []
    assert run(home, "notify", "--test").stdout.splitlines()[0] == "webhook  http://127.0.0.1  delivered"
    assert hook.events[-1] == post.messages[-1]["Subject"].split()[1] == "test"
    unset = run_memstate(home, "notify", "--test", "--json")
    assert unset.code == 1
    assert "HOOK_SECRET is not set" in unset.document["channels"][0]["problem"]
    assert "s3cret" not in (home / "notifications.json").read_text()


def test_dagster_s_sensors_notify_of_its_runs_once(home: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)
    configure(home, hook, more=BROKEN)
    sensed = [in_dagster(home, dg.DagsterEventType.RUN_FAILURE, "failed_nights") for _ in range(2)]
    assert hook.events == ["night_failed"]
    assert hook.documents[0]["run_id"] == sensed[0]
    configure(home, hook)
    drop_damaged(home)
    in_dagster(home, dg.DagsterEventType.RUN_SUCCESS, "published_nights")
    assert hook.events == ["night_failed", "fault_ended", "night_warned"]
    store = open_store(home, {})
    done = maintain(store, parse_moment("2026-04-07T02:00:00Z"))
    assert hook.events[3:] == ["fault_ended"]
    sense(home, done.summary["run_id"], dg.DagsterEventType.RUN_SUCCESS, "published_nights")
    assert len(hook.bodies) == 4


def in_dagster(home: Path, ended: dg.DagsterEventType, sensor: str) -> str:
    """A run that Dagster started, and its end as a sensor sees it; the id of the run."""
    with dagster_instance(open_store(home, {}).home) as instance:
        job = build_defs(home).resolve_job_def(NIGHTLY)
        done = job.execute_in_process(
            partition_key="s0", instance=instance, tags={NOW_TAG: NIGHT}, raise_on_error=False
        )
    sense(home, done.run_id, ended, sensor)
    return done.run_id


def sense(home: Path, run_id: str, ended: dg.DagsterEventType, name: str) -> Any:
    with dagster_instance(open_store(home, {}).home) as instance:
        found = instance.get_run_by_id(run_id)
        assert found is not None
        (record,) = instance.get_records_for_run(run_id, of_type=ended).records
        event = record.event_log_entry.dagster_event
        assert event is not None
        context = dg.build_run_status_sensor_context(
            sensor_name=name, dagster_event=event, dagster_instance=instance, dagster_run=found
        )
        given = context.for_run_failure() if ended is dg.DagsterEventType.RUN_FAILURE else context
        return build_defs(home).get_repository_def().get_sensor_def(name)(given)
