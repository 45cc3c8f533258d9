"""Chromium without a window, driven over a pipe by Chrome's DevTools protocol. Needs no package but chromium."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

TIMEOUT = 60


class Browser:
    """A page in a browser of its own. What the page logs as an error is in `errors`."""

    def __init__(self, width, height, dark=False, scale=1):
        self.profile = tempfile.mkdtemp(prefix="varid-chromium-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.input, self.output = ours_in, ours_out
        # The browser reads file descriptor 3 and writes 4.
        command = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        arguments = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
                     "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", "chromium", *arguments],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.last, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        if width < 600:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], TIMEOUT)
            data = os.read(self.input, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser does not answer")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        request = {"id": self.last, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        while True:
            message = self.message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.event(message)

    def event(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"a dialog opened: {params['message']}")

    def run(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression):
        """Until an expression is true."""
        end = time.monotonic() + TIMEOUT
        while not self.run(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"not true: {expression}; errors: {self.errors}")
            time.sleep(0.05)

    def settle(self):
        """Until what was changed is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path):
        """Opens a report and waits for its views. Seconds from navigation to the first painted views."""
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self.wait("document.getElementById('report') && !document.getElementById('report').hasAttribute('aria-busy')"
                  " || document.getElementById('failure')?.hidden === false")
        self.settle()
        return self.run("performance.now()") / 1000

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent")

    def box(self, selector):
        """Where an element is: left, top, width, height."""
        script = f"""(() => {{ const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: 'nearest'}});
            const box = element.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }})()"""
        return self.run(script)

    def mouse(self, kind, x, y, clicks=1):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=clicks,
                  buttons=0 if kind == "mouseReleased" else 1)

    def click(self, selector, at=(0.5, 0.5), pixels=None):
        """A click at a share of an element's width and height, or so many pixels from its corner."""
        left, top, width, height = self.box(selector)
        across, down = pixels or (at[0] * width, at[1] * height)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + across, y=top + down)
        self.mouse("mousePressed", left + across, top + down)
        self.mouse("mouseReleased", left + across, top + down)
        self.settle()

    def drag(self, selector, start, end):
        """From one share of an element's width to another."""
        left, top, width, height = self.box(selector)
        y = top + height / 2
        self.mouse("mousePressed", left + start * width, y)
        for step in range(1, 6):
            share = start + (end - start) * step / 5
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + share * width, y=y, button="left", buttons=1)
        self.mouse("mouseReleased", left + end * width, y)
        self.settle()

    def key(self, key, shift=False):
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        fields = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())), "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **fields)
        self.call("Input.dispatchKeyEvent", type="keyUp", **fields)
        self.settle()

    def type(self, selector, text):
        """Text into a field, instead of what was there."""
        self.run(f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.focus(); field.select(); }})()")
        if text:
            self.call("Input.insertText", text=text)
        else:
            self.key("Delete")
            self.run(f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.value = '';"
                     " field.dispatchEvent(new Event('input')); })()")
        self.settle()

    def screenshot(self, path, full=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
