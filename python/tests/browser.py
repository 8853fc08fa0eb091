"""A headless Chromium, driven over two pipes by the DevTools protocol."""

import json
import subprocess
import time


class Browser:
    """One tab. ``errors`` lists what went wrong in it."""

    def __init__(self, program, folder):
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
        ]
        command = ["sh", "-c", 'exec "$@" 3<&0 4>&1', "sh", program, *options, f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [*command, "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        self._session = None
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def call(self, method, **parameters):
        """The result of a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while (answer := self._read()).get("id") != self._number:
            self._note(answer.get("method"), answer.get("params"))
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _read(self):
        message = bytearray()
        while (byte := self._process.stdout.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            message += byte
        return json.loads(message)

    def _note(self, event, told):
        if event == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and told["type"] in ["error", "warning", "assert"]:
            self.errors.append(
                " ".join(str(one.get("value", one.get("description"))) for one in told["args"])
            )
        elif event == "Log.entryAdded" and told["entry"]["level"] in ["error", "warning"]:
            self.errors.append(told["entry"]["text"])

    def open(self, path, width, dark=False):
        """Opens a file in a window of this many pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.errors.clear()
        # The page that was open before answers until another has taken its place.
        for address in ["about:blank", path.as_uri()]:
            self.call("Page.navigate", url=address)
            self.wait(f"location.href === {address!r}")

    def value(self, expression):
        """What an expression of JavaScript is, awaited where it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, seconds=60):
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < deadline, f"{expression} is false after {seconds} s; {self.errors}"
            time.sleep(0.02)
