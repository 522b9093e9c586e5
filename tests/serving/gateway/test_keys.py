from __future__ import annotations

from pathlib import Path

import pytest

from weft.core.errors import SpecError
from weft.serving.gateway import GatewayKeys, GatewayOptions

KEY = "0123456789abcdef"


def test_only_a_whole_key_is_admitted() -> None:
    keys = GatewayKeys([KEY, KEY[::-1]])
    assert keys.admit(KEY)
    assert keys.admit(KEY[::-1])
    for other in ("", KEY[:-1], KEY + "0", KEY.upper(), "é" * 16, "\udc80"):
        assert not keys.admit(other)


def test_keys_are_not_kept_nor_shown() -> None:
    keys = GatewayKeys([KEY])
    assert KEY not in repr(keys) + repr(vars(keys)) + repr(GatewayOptions(keys=keys))


@pytest.mark.parametrize("key", ["", " ", "short", "with blank in the middle", "ünïcödé" * 3])
def test_keys_that_cannot_work_are_refused_without_showing_them(key: str) -> None:
    with pytest.raises(SpecError) as raised:
        GatewayKeys([key])
    assert not key.strip() or key not in str(raised.value)


def test_several_keys_come_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEYS", f"{KEY}, {KEY[::-1]},")
    keys = GatewayKeys.from_env("GATEWAY_KEYS")
    assert keys.admit(KEY)
    assert keys.admit(KEY[::-1])
    monkeypatch.delenv("GATEWAY_KEYS")
    with pytest.raises(SpecError, match="GATEWAY_KEYS is not set"):
        GatewayKeys.from_env("GATEWAY_KEYS")


def test_a_file_of_keys_is_private(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the team\n{KEY}\n\n{KEY[::-1]}\n")
    file.chmod(0o640)
    with pytest.raises(SpecError, match=r"others may read .*chmod 600"):
        GatewayKeys.from_file(file)
    file.chmod(0o600)
    assert GatewayKeys.from_file(file).admit(KEY[::-1])
    assert not GatewayKeys.from_file(file).admit("# of the team")
    with pytest.raises(SpecError, match="cannot read"):
        GatewayKeys.from_file(tmp_path / "none")
    with pytest.raises(SpecError):
        GatewayKeys.from_file(tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_what_others_can_reach_needs_keys(host: str) -> None:
    with pytest.raises(SpecError, match="no keys"):
        GatewayOptions(host=host)
    assert not GatewayOptions(host=host, keys=GatewayKeys([KEY])).loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert GatewayOptions(host=host).loopback


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 70000},
        {"max_concurrent": 0},
        {"max_waiting": -1},
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"drain_s": -1.0},
        {"origins": ("*",)},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        GatewayOptions(**wrong)  # type: ignore[arg-type]
