"""A headless Chromium, spoken to in the WebDriver protocol."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "enter": "\ue007",
    "down": "\ue015",
    "right": "\ue014",
    "left": "\ue012",
    "tab": "\ue004",
    "escape": "\ue00c",
}


def why_no_browser() -> str | None:
    """What is missing; None if there is a browser."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    return None


class Browser:
    """One window."""

    def __init__(self, driver: httpx.Client, session: str) -> None:
        self._driver, self._session = driver, session

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._driver.request(method, f"/session/{self._session}{path}", json=body)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    def open(self, address: str) -> None:
        self._call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script gives; a promise is waited for."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, condition: str, *arguments: Any) -> Any:
        """Wait until a condition of the page holds, and give its value."""
        script = """
            const condition = new Function("arguments", `return (${arguments[0]})`), given = arguments[1];
            return new Promise((done, fail) => {
                const stop = performance.now() + 20000;
                (function look() {
                    const value = condition(given);
                    if (value) done(value);
                    else if (performance.now() > stop) fail(new Error("never: " + condition));
                    else setTimeout(look, 20);
                })();
            });"""
        return self.run(script, condition, list(arguments))

    def _find(self, selector: str) -> str:
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    def click(self, selector: str) -> None:
        self._call("POST", f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self._call("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")
        ]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def window(self, width: int, height: int, dark: bool = False) -> None:
        """Size of the page, and which colours are wanted."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        for command, parameters in (
            ("Emulation.setDeviceMetricsOverride", metrics),
            ("Emulation.setEmulatedMedia", {"features": [scheme]}),
        ):
            self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def errors(self) -> list[str]:
        """What the console complained about since this was last asked."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


@contextmanager
def browser(home: Path) -> Iterator[Browser]:
    """A browser with an empty profile; it ends with the block."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        port = next(
            found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line))
        )
        options = {"args": [*FLAGS, f"--user-data-dir={home}"], "binary": shutil.which("chromium")}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            started = client.post("/session", json={"capabilities": wanted}).json()["value"]
            assert "sessionId" in started, started
            try:
                yield Browser(client, started["sessionId"])
            finally:
                client.delete(f"/session/{started['sessionId']}")
    finally:
        driver.terminate()
        driver.wait(30)
        if driver.stdout is not None:
            driver.stdout.close()
