"""A client of an API server: the standard library, and a connection that stays open, for harnesses that ask much.

An `Api` may be used by several threads; each has a connection of its own. It retries nothing but a request on a kept
connection that the server had closed meanwhile.
"""

import http.client
import json
import ssl
import threading
import urllib.parse

PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json",
           "json": "application/json-patch+json", "apply": "application/apply-patch+yaml"}


def holds(thing, condition):
    """Whether an object's status has this condition with status True."""
    conditions = thing.get("status", {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


class ApiError(Exception):
    """The server said no. `status` is the HTTP status, `body` what came with it, a Status object if it was JSON."""

    def __init__(self, method, path, status, body):
        self.status, self.body = status, body
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{method} {path}: {status} {message}")


class Api:
    def __init__(self, server, pki, user="admin", timeout=30):
        """`pki` is the folder with ca.crt and the user's USER.crt and USER.key."""
        where = urllib.parse.urlsplit(server)
        self.address, self.timeout = (where.hostname, where.port), timeout
        self.tls = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        self.tls.load_cert_chain(f"{pki}/{user}.crt", f"{pki}/{user}.key")
        self.kept = threading.local()

    def connect(self, timeout):
        return http.client.HTTPSConnection(*self.address, timeout=timeout, context=self.tls)

    def exchange(self, method, path, body, headers):
        connection = getattr(self.kept, "connection", None)
        if connection is not None:
            try:
                connection.request(method, path, body, headers)
                return connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                connection.close()  # closed while it lay idle; a fresh one tells the truth
        connection = self.kept.connection = self.connect(self.timeout)
        try:
            connection.request(method, path, body, headers)
            return connection.getresponse()
        except BaseException:
            self.kept.connection = None
            connection.close()
            raise

    def request(self, method, path, body=None, content_type="application/json"):
        """What the server answers: a value, or text where it is not JSON. Raises ApiError, or OSError if it is away."""
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        response = self.exchange(method, path, data, {"Content-Type": content_type, "Accept": "application/json"})
        try:
            text = response.read().decode()
        except (http.client.HTTPException, OSError):
            self.kept.connection = None
            raise
        value = json.loads(text) if "json" in response.headers.get("Content-Type", "") else text
        if response.status >= 300:
            raise ApiError(method, path, response.status, value)
        return value

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body):
        return self.request("POST", path, body)

    def put(self, path, body):
        return self.request("PUT", path, body)

    def delete(self, path, body=None):
        return self.request("DELETE", path, body)

    def patch(self, path, body, kind="merge"):
        return self.request("PATCH", path, body, PATCHES[kind])

    def watch(self, path, timeout=30):
        """Yields the events of a list (`path` with its query), on a connection of its own, until the server ends it or
        nothing came for `timeout` seconds, which raises TimeoutError."""
        connection = self.connect(timeout)
        try:
            joint = "&" if "?" in path else "?"
            connection.request("GET", f"{path}{joint}watch=1", headers={"Accept": "application/json"})
            response = connection.getresponse()
            if response.status >= 300:
                raise ApiError("WATCH", path, response.status, response.read().decode())
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()
