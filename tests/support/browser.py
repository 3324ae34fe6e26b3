"""A page in a real browser: Debian's Chromium without a window, driven by its DevTools protocol."""

import json
import pathlib
import shutil
import subprocess
import urllib.request

import websocket

from yard import wait_for


class Browser:
    def __init__(self, home, env):
        program = shutil.which("chromium")
        assert program, "chromium is missing: script/setup test"
        self.home = pathlib.Path(home)
        self.home.mkdir()
        self.log = (self.home / "log").open("w")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-port=0", "--remote-allow-origins=*",
             f"--user-data-dir={self.home}", "about:blank"],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            env={**env, "HOME": str(self.home), "TMPDIR": "/tmp"})  # for its socket, whose path must be short
        port = wait_for(self.port, "a browser", 120)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            page = next(each for each in json.load(answer) if each["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=60)
        self.count = 0
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(150)

    def port(self):
        file = self.home / "DevToolsActivePort"
        assert self.process.poll() is None, (self.home / "log").read_text()
        lines = file.read_text().split() if file.exists() else []
        return lines[0] if lines else None

    def call(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") == self.count:
                assert "error" not in said, said
                return said["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def draw(self, selector, points):
        """A stroke with the mouse; points are parts of the element's width and height."""
        area = self.run(f"(() => {{ const a = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                        " return [a.left, a.top, a.width, a.height]; })()")
        places = [(area[0] + x * area[2], area[1] + y * area[3]) for x, y in points]
        for kind, (x, y) in [("mousePressed", places[0]), *(("mouseMoved", place) for place in places[1:]), ("mouseReleased", places[-1])]:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
