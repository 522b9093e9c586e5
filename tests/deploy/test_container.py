"""The steps of the image, in a container of the kernel's namespaces: there is no engine here.

weft's wheel is installed, and runs as the image's user with a read-only root.
"""

from __future__ import annotations

import shlex
from importlib.metadata import requires
from pathlib import Path

import pytest

from tests import linked_environment
from tests.deploy import chart, containerfile
from tests.deploy.container import Container, container, needed_folders
from tests.integration.test_wheel import wheels  # noqa: F401 - a fixture

_WORKFLOWS = Path("/srv/weft/workflows")
_NOWHERE = "postgresql://nobody@127.0.0.1:9/x"
_KEY = "k3y-of-a-client-0123456789abcdef"
_STARTER = chart.ROOT / "weft" / "cli" / "starter" / "first"


@pytest.fixture(scope="module")
def image(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Container:  # noqa: F811
    folder = tmp_path_factory.mktemp("image")
    config = containerfile.config()
    known = "\n".join(requires("weft") or ())
    extras = [one for one in config.extras.split(",") if f"'{one}'" in known.replace('"', "'")]
    installed = folder / "environment"
    linked_environment.make(installed, wheels[0].parent, ",".join(extras))
    workflows = folder / "workflows"
    workflows.mkdir()
    (workflows / "workflow.yaml").write_bytes((_STARTER / "workflow.yaml").read_bytes())
    (workflows / "tools.py").write_bytes((_STARTER / "tools.py.txt").read_bytes())
    (folder / "root").mkdir()
    mounts = {each: each for each in needed_folders(installed)}
    mounts |= {Path("/opt/weft"): installed, _WORKFLOWS: workflows}
    return container(config, folder / "root", mounts)


def test_it_is_the_user_of_the_image_and_has_no_rights(image: Container) -> None:
    done = image.run("id -u && id -g && grep -h -e CapEff -e NoNewPrivs /proc/self/status && pwd")
    uid, gid, capabilities, *_, folder = done.stdout.split("\n")[:-1]
    assert (uid, gid, folder) == ("10001", "10001", "/srv/weft")
    assert capabilities.split() in (["NoNewPrivs:", "1"], ["CapEff:", "0000000000000000"])
    assert "CapEff:\t0000000000000000" in done.stdout


@pytest.mark.parametrize(
    "place", ["/x", "/srv/weft/x", "/srv/weft/workflows/x", "/opt/weft/x", "/usr/x", "/etc/x"]
)
def test_the_root_is_read_only(image: Container, place: str) -> None:
    done = image.run(f"touch {place}")
    assert done.returncode
    assert "Read-only file system" in done.stderr


def test_the_two_writable_places_are(image: Container) -> None:
    done = image.run('touch /tmp/x "$WEFT_HOME/x"')
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("weft --version", "weft 0.1.0"),
        (f"weft check {_WORKFLOWS}/workflow.yaml", "ok"),
        (f"weft run {_WORKFLOWS}/workflow.yaml && weft runs", "succeeded"),
        (f"weft runs --journal {_NOWHERE}", "refused"),
        ("weft", "Usage: weft"),
    ],
)
def test_weft_works_there(image: Container, command: str, shown: str) -> None:
    done = image.run(command)
    assert shown in done.stdout + done.stderr


def test_the_entry_point_and_what_it_does_by_default(image: Container) -> None:
    done = image.run(shlex.join([*image.config.entrypoint, "--help"]))
    assert done.returncode == 0, done.stderr
    assert "Usage: weft" in done.stdout


def test_the_gateway_serves_and_is_healthy_and_drains(image: Container) -> None:
    """The command and the probes are those of the chart, the health check is the image's."""
    (gateway,) = [
        pod["containers"][0]
        for each in chart.rendered(chart.VALUES[-1])
        if each["kind"] == "Deployment"
        for pod in [each["spec"]["template"]["spec"]]
        if pod["containers"][0]["name"] == "gateway"
    ]
    command = [each.replace("starter.yaml", "workflow.yaml") for each in gateway["args"]]
    paths = {gateway[each]["httpGet"]["path"] for each in gateway if each.endswith("Probe")}
    asks = f"""
import json, sys
from urllib.request import Request, urlopen
for path in {sorted(paths)!r}:
    assert urlopen("http://127.0.0.1:8080" + path).status == 200, path
body = {{"model": "starter", "messages": [{{"role": "user", "content": "rivers"}}]}}
headers = {{"Content-Type": "application/json", "Authorization": "Bearer {_KEY}"}}
ask = Request("http://127.0.0.1:8080/v1/chat/completions", json.dumps(body).encode(), headers)
print(urlopen(ask).read().decode())
"""
    health = shlex.join(image.config.health)
    script = f"""
export WEFT_GATEWAY_KEYS={_KEY} WEFT_JOURNAL=$WEFT_HOME/journal.sqlite
{shlex.join([*image.config.entrypoint, *command])} >/tmp/log 2>&1 & gateway=$!
tries=0
until {health} 2>/dev/null; do
    tries=$((tries + 1)); [ $tries -lt 100 ] || {{ cat /tmp/log; exit 1; }}
    kill -0 $gateway || {{ cat /tmp/log; exit 1; }}
done
python -c {shlex.quote(asks)} || exit 1
kill -TERM $gateway; wait $gateway; echo "ended $?"
weft runs --json
! {health} 2>/dev/null && echo "unhealthy once it has ended"
"""
    done = image.run(script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Rivers, 42 facts" in done.stdout
    assert "ended 0" in done.stdout
    assert '"succeeded"' in done.stdout
    assert "unhealthy once it has ended" in done.stdout
