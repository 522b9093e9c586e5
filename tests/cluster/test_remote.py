"""Clusters over ssh, with a program in place of ssh; the manifest; what is said of a local one."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.golden_files import assert_golden
from weft.cli.main import app
from weft.cluster.manifest import manifests
from weft.cluster.nodes import ClusterNode, LocalCluster, node_name, save_cluster
from weft.cluster.remote import RemoteHost
from weft.cluster.settings import Ray
from weft.core.errors import BuildError

GOLDEN = Path(__file__).parent.parent / "golden"
SSH = """#!{python}
import json, os, sys
folder = os.environ["FAKE_SSH"]
given = sys.stdin.read()
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(json.dumps({{"arguments": sys.argv[1:], "stdin": given}}) + "\\n")
if os.path.exists(os.path.join(folder, "fails")) and "start" in sys.argv[-1]:
    sys.stderr.write("no route to host")
    sys.exit(255)
"""


class FakeSsh:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fail(self) -> None:
        (self._folder / "fails").touch()

    @property
    def calls(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self._folder / "calls").read_text().splitlines()]


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSsh:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH.format(python=sys.executable), "utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("FAKE_SSH", str(tmp_path))
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    return FakeSsh(tmp_path)


def weft(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cluster", *arguments])
    return result.exit_code, result.output


def test_hosts_start_in_order_and_end_in_reverse(ssh: FakeSsh, tmp_path: Path) -> None:
    code, said = weft("up", "--host", "me@10.0.0.1", "--host", "me@10.0.0.2=gpu,big")
    assert (code, "10.0.0.1:6379" in said) == (0, True)
    token_file = tmp_path / "home" / "hosts.token"
    token = token_file.read_text("ascii")
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    hosts, commands = [], []
    for call in ssh.calls:
        *options, host, command = map(str, call["arguments"])  # type: ignore[call-overload]
        assert options[-1] == "--"
        assert token not in command
        hosts.append(host)
        commands.append(shlex.split(command))
    assert hosts == ["me@10.0.0.1", "me@10.0.0.1", "me@10.0.0.2", "me@10.0.0.2"]
    assert [call["stdin"] == token for call in ssh.calls] == [True, False, True, False]
    head, node = commands[1], commands[3]
    assert "--head" in head
    assert "--address=10.0.0.1:6379" in node
    assert '--resources={"gpu": 1000000, "big": 1000000}' in node
    assert "RAY_AUTH_MODE=token" in node

    assert weft("status", "--json")[0] == 0
    code, _ = weft("down")
    assert code == 0
    assert [call["arguments"][-2] for call in ssh.calls[-2:]] == ["me@10.0.0.2", "me@10.0.0.1"]  # type: ignore[index]
    assert not token_file.exists()
    assert "no cluster" in weft("status")[1]


def test_a_host_that_does_not_start_ends_the_others(ssh: FakeSsh) -> None:
    ssh.fail()
    code, said = weft("up", "--host", "10.0.0.1", "--host", "10.0.0.2")
    assert code != 0
    assert "no route to host" in said
    ended = ssh.calls[-2:]
    assert all("kill -TERM" in str(call["arguments"]) for call in ended)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--host", "10.0.0.1", "--nodes", "2"], "name each host"),
        (["--host", "10.0.0.1", "--label", "1=gpu"], "--host HOST=LABEL"),
        (["--host", "10.0.0.1", "--env", "SOME_KEY"], "set the variable on each host"),
        (["--python", "python3.12"], "add --host"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    ssh: FakeSsh, tmp_path: Path, options: list[str], remedy: str
) -> None:
    code, said = weft("up", *options)
    assert code == 2
    assert remedy in " ".join(said.split())
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "", "a b", "a;b", "$(x)", "h=a b", "h=$(x)", "@h"]
)
def test_what_is_no_host_never_reaches_ssh(text: str) -> None:
    with pytest.raises(BuildError, match="no host"):
        RemoteHost.parse(text)


def test_the_manifest(tmp_path: Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        "name: a\nrun: {on: ray, pools: {default: {}, big_gpu: {labels: [gpu, big]}}}\n"
        "nodes: {a: {value: 1}}\noutputs: {a: '{{ a }}'}\n",
        "utf-8",
    )
    options = ["--image", "registry.example/weft:1", "--name", "prod", "--nodes", "2"]
    options += ["--claim", "shared", "--env", "OPENAI_API_KEY"]
    code, text = weft("manifest", str(flow), *options)
    assert code == 0, text
    assert_golden(GOLDEN / "cluster_manifest.yaml", text)


def test_a_manifest_has_no_value_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    (made,) = manifests(Ray(), "weft", "image", credentials=["OPENAI_API_KEY"])
    assert "sk-very-secret" not in json.dumps(made)


@pytest.mark.parametrize("name", ["Weft", "a_b", "-a", "a" * 60, ""])
def test_a_bad_name_of_a_cluster_is_refused(name: str) -> None:
    with pytest.raises(BuildError):
        manifests(Ray(), name, "image")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_node_is_called_as_the_status_calls_it(own_home: Path) -> None:
    assert node_name("127.0.0.2:1", "127.0.0.3") == "127.0.0.3"
    nodes = (
        ClusterNode("head", "127.0.0.2", 1, "a"),
        ClusterNode("node1", "127.0.0.3", 2, "b"),
    )
    save_cluster(LocalCluster("127.0.0.2:1", "token", "folder", nodes))
    assert node_name("127.0.0.2:1", "127.0.0.3") == "node1"
    assert node_name("127.0.0.2:1", "127.0.0.9") == "127.0.0.9"
    assert node_name("10.0.0.1:1", "127.0.0.3") == "127.0.0.3"
    (own_home / "cluster.json").write_text("{", "utf-8")
    assert node_name("127.0.0.2:1", "127.0.0.3") == "127.0.0.3"


def up(*options: str) -> tuple[int, str]:
    code, said = weft("up", *options)
    return code, " ".join(said.split())


@pytest.mark.usefixtures("own_home")
def test_options_cannot_change_a_cluster_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    save_cluster(LocalCluster("127.0.0.2:1", "t", "f", (ClusterNode("head", "127.0.0.2", 1, "a"),)))
    monkeypatch.setattr(ClusterNode, "is_alive", True)
    assert up() == (0, "it runs already, at 127.0.0.2:1")
    code, said = up("--nodes", "4", "--label", "1=gpu")
    assert code
    assert "runs already: --nodes, --label cannot change it" in said
    assert "weft cluster down" in said
    assert "--nodes" in up("--nodes", "1")[1]


@pytest.mark.usefixtures("own_home")
def test_a_variable_that_is_not_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)
    monkeypatch.setattr("weft.cluster.nodes.start_cluster", lambda *_: pytest.fail("it started"))
    code, said = up("--env", "PATH", "--env", "NO_SUCH")
    assert code
    assert "NO_SUCH is not set here" in said
