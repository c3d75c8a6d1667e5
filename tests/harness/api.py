# SPDX-License-Identifier: Apache-2.0
"""A small client of the Kubernetes API, for tests: it does what it is told and hides nothing."""
import base64
import http.client
import json
import queue
import ssl
import threading
import time
import urllib.parse

import yaml

from .wait import Timeout, scaled

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Kubeconfig:
    """The current context of a kubeconfig file: server, token, TLS context."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as source:
            config = yaml.safe_load(source)
        context = self._named(config, "contexts", config["current-context"])["context"]
        cluster = self._named(config, "clusters", context["cluster"])["cluster"]
        user = self._named(config, "users", context["user"])["user"] if context.get("user") else {}
        self.server = cluster["server"]
        self.token = user.get("token")
        if not self.token and user.get("tokenFile"):
            with open(user["tokenFile"], encoding="utf-8") as token:
                self.token = token.read().strip()
        self.tls = None
        if self.server.startswith("https:"):
            authority = cluster.get("certificate-authority-data")
            self.tls = ssl.create_default_context(
                cafile=cluster.get("certificate-authority"),
                cadata=base64.b64decode(authority).decode() if authority else None)

    @staticmethod
    def _named(config, part, name):
        return next(entry for entry in config[part] if entry["name"] == name)


class Response:
    """code, headers, text, and the body as JSON (None when it is none)."""

    def __init__(self, code, headers, text):
        self.code, self.headers, self.text = code, headers, text
        try:
            self.body = json.loads(text)
        except ValueError:
            self.body = None

    def __repr__(self):
        return f"<{self.code} {self.text[:500]}>"


class ApiError(OSError):
    """An answer of 400 and above. code, reason, message, and `status`: the Status object as sent."""

    def __init__(self, method, path, response):
        self.code = response.code
        self.response = response
        self.status = response.body if isinstance(response.body, dict) else {}
        self.reason = self.status.get("reason")
        self.message = self.status.get("message", response.text)
        super().__init__(f"{method} {path}: {self.code} {self.reason}: {self.message}")

    @property
    def causes(self):
        return (self.status.get("details") or {}).get("causes") or []


class Api:
    """raw() returns every answer; request() raises ApiError from 400 on and returns the parsed body."""

    def __init__(self, kubeconfig, timeout=30):
        self.kubeconfig = kubeconfig if isinstance(kubeconfig, Kubeconfig) else Kubeconfig(kubeconfig)
        self.timeout = scaled(timeout)
        self._local = threading.local()

    def connect(self, timeout=None):
        url = urllib.parse.urlsplit(self.kubeconfig.server)
        timeout = timeout or self.timeout
        if self.kubeconfig.tls:
            return http.client.HTTPSConnection(url.hostname, url.port, timeout=timeout, context=self.kubeconfig.tls)
        return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)

    def headers(self, content_type=None, accept="application/json"):
        headers = {"Accept": accept}
        if self.kubeconfig.token:
            headers["Authorization"] = f"Bearer {self.kubeconfig.token}"
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    @staticmethod
    def url(path, query=None):
        query = {key: str(value).lower() if isinstance(value, bool) else value
                 for key, value in (query or {}).items() if value is not None}
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def _send(self, method, url, data, headers):
        """One request over this thread's connection. A connection that the server has closed meanwhile is replaced
        once, and only when nothing of an answer had come."""
        for fresh in (False, True):
            connection = getattr(self._local, "connection", None)
            if connection is None or fresh:
                connection = self._local.connection = self.connect()
                fresh = True
            try:
                connection.request(method, url, data, headers)
                response = connection.getresponse()
                return response, response.read().decode()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                self._local.connection = None
                if fresh:
                    raise
            except BaseException:
                self._local.connection = None
                raise

    def raw(self, method, path, body=None, content_type=None, query=None, accept="application/json"):
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            content_type = content_type or "application/json"
        response, text = self._send(method, self.url(path, query), data, self.headers(content_type, accept))
        return Response(response.status, response.headers, text)

    def request(self, method, path, body=None, content_type=None, query=None, accept="application/json"):
        response = self.raw(method, path, body, content_type, query, accept)
        if response.code >= 400:
            raise ApiError(method, self.url(path, query), response)
        return response.body

    def resource(self, api_version, plural, namespace=None, kind=None):
        """A resource type, in a namespace or (None) cluster-scoped, or across all namespaces."""
        return Resource(self, api_version, plural, namespace, kind)


class Resource:
    """create, get, list, replace, merge_patch, json_patch, apply, delete, watch: options of the API (dryRun,
    fieldManager, resourceVersion ...) are keyword arguments, spelt as the API spells them."""

    def __init__(self, api, api_version, plural, namespace=None, kind=None):
        self.api, self.api_version, self.plural, self.namespace = api, api_version, plural, namespace
        # "widgets" -> "Widget" is right for what the tests use; others say kind=.
        self.kind = kind or {"configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount",
                             "customresourcedefinitions": "CustomResourceDefinition"
                             }.get(plural, plural[:1].upper() + plural[1:].rstrip("s"))
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        self.path = prefix + (f"/namespaces/{namespace}" if namespace else "") + f"/{plural}"

    def in_namespace(self, namespace):
        return Resource(self.api, self.api_version, self.plural, namespace, self.kind)

    def object(self, name=None, spec=None, metadata=None, **more):
        """A minimal object of this type: object("a", spec={}, labels={"x": "y"})."""
        result = {"apiVersion": self.api_version, "kind": self.kind, "metadata": dict(metadata or {})}
        if name is not None:
            result["metadata"]["name"] = name
        for key in ("labels", "annotations", "finalizers", "generateName", "ownerReferences"):
            if key in more:
                result["metadata"][key] = more.pop(key)
        if spec is not None:
            result["spec"] = spec
        result.update(more)
        return result

    def _one(self, name, subresource=None):
        return f"{self.path}/{name}" + (f"/{subresource}" if subresource else "")

    def create(self, name=None, spec=None, body=None, query=None, **more):
        return self.api.request("POST", self.path, body or self.object(name, spec, **more), query=query)

    def get(self, name, **query):
        return self.api.request("GET", self._one(name), query=query)

    def exists(self, name):
        response = self.api.raw("GET", self._one(name))
        assert response.code in (200, 404), response
        return response.code == 200

    def list(self, **query):
        return self.api.request("GET", self.path, query=query)

    def names(self, **query):
        return [item["metadata"]["name"] for item in self.list(**query)["items"]]

    def replace(self, body, subresource=None, **query):
        return self.api.request("PUT", self._one(body["metadata"]["name"], subresource), body, query=query)

    def merge_patch(self, name, patch, subresource=None, **query):
        return self.api.request("PATCH", self._one(name, subresource), patch, MERGE_PATCH, query)

    def json_patch(self, name, patch, subresource=None, **query):
        return self.api.request("PATCH", self._one(name, subresource), patch, JSON_PATCH, query)

    def apply(self, body, manager="test", subresource=None, **query):
        return self.api.request("PATCH", self._one(body["metadata"]["name"], subresource), body, APPLY_PATCH,
                                {"fieldManager": manager, **query})

    def delete(self, name, body=None, **query):
        return self.api.request("DELETE", self._one(name), body, query=query)

    def delete_collection(self, **query):
        return self.api.request("DELETE", self.path, query=query)

    def watch(self, **query):
        """Opens a watch; use it as a context manager."""
        return Watch(self.api, self.path, query)


class Watch:
    """events     all events so far: [{"type": "ADDED", "object": {...}}, ...]
    next()     waits for the next event that was not yet returned
    wait_end() waits until the server has closed the stream
    """

    def __init__(self, api, path, query):
        self._connection = api.connect(timeout=scaled(120))
        self._connection.request("GET", api.url(path, {"watch": "true", **query}), headers=api.headers())
        self.response = self._connection.getresponse()
        if self.response.status >= 400:
            response = Response(self.response.status, self.response.headers, self.response.read().decode())
            self._connection.close()
            raise ApiError("WATCH", api.url(path, query), response)
        # getresponse() may have taken the socket out of the connection ("Connection: close").
        self._socket = self._connection.sock or getattr(self.response.fp.raw, "_sock", None)
        self.events = []
        self.ended = threading.Event()
        self._queue = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            while True:
                line = self.response.readline()
                if not line:
                    break
                if line.strip():
                    event = json.loads(line)
                    self.events.append(event)
                    self._queue.put(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.ended.set()

    def next(self, deadline=15.0, bookmarks=False):
        """The next event; BOOKMARKs are left out unless asked for."""
        end = time.monotonic() + scaled(deadline)
        while True:
            try:
                event = self._queue.get(timeout=max(0.001, end - time.monotonic()))
            except queue.Empty:
                raise Timeout(f"no further watch event within {scaled(deadline):g} s; so far: {self.brief()}") from None
            if bookmarks or event["type"] != "BOOKMARK":
                return event

    def next_bookmark(self, deadline=15.0):
        end = time.monotonic() + scaled(deadline)
        while True:
            event = self.next(max(0.001, end - time.monotonic()), bookmarks=True)
            if event["type"] == "BOOKMARK":
                return event

    def take(self, count, deadline=15.0):
        return [self.next(deadline) for _ in range(count)]

    def wait_end(self, deadline=15.0):
        if not self.ended.wait(scaled(deadline)):
            raise Timeout(f"the watch was not closed within {scaled(deadline):g} s; so far: {self.brief()}")

    def brief(self):
        return [(event.get("type"), event.get("object", {}).get("metadata", {}).get("name")) for event in self.events]

    def close(self):
        try:
            if self._socket:
                self._socket.shutdown(2)
        except OSError:
            pass
        self._thread.join(2)
        self.response.close()
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
