# SPDX-License-Identifier: Apache-2.0
"""What reconciled-devserver can be asked to do wrong (docs/devserver.md); a part of Devserver."""
import json
import ssl

from .api import Api
from .wait import wait_until


class Faults:
    """devserver.fault(match={"verb": "list"}, status=503) -> its id; other members as docs/devserver.md spells them.

    faults()                what was asked for: {id: {"seen": requests that matched, "hit": those it acted on, "fault": {}}}
    clear_faults(id=None)   this one, or all
    compact(version=None)   forgets the history up to that version; default: all of it
    snapshot(), restore(id) the database goes back, resourceVersions too; all connections break
    another_cluster()       kube-system gets another UID
    new_certificate("new")  or "same": by which authority; connections break
    set_token(token, kubeconfig=False)
    close_watches("clean")  or "cut", those that match
    """

    def control(self, action, body=None, method="POST"):
        answer = self.api.raw(method, f"/devserver/{action}", body=body)
        assert answer.code < 300, f"{method} /devserver/{action}: {answer.code} {answer.text}"
        return json.loads(answer.text)

    def fault(self, match=None, **action):
        return self.control("faults", {**({"match": match} if match else {}), **action})[0]["id"]

    def faults(self):
        return {entry["id"]: entry for entry in self.control("faults", method="GET")}

    def clear_faults(self, number=None):
        self.control(f"faults/{number}" if number else "faults", method="DELETE")

    def compact(self, version=None):
        self.control("compact", {"resourceVersion": str(version)} if version else {})

    def snapshot(self):
        return self.control("snapshot")["id"]

    def restore(self, number):
        self.control("restore", {"id": number})

    def another_cluster(self):
        self.control("cluster")

    def new_certificate(self, authority="same"):
        """Returns when the new certificate is in use."""
        before, kubeconfig = self._certificate(), self.kubeconfig.read_text(encoding="utf-8")
        self.control("certificate", {"authority": authority})
        wait_until(lambda: self._certificate() != before, "the new certificate")
        if authority == "new":
            wait_until(lambda: self.kubeconfig.read_text(encoding="utf-8") != kubeconfig, "the new kubeconfig")
        token = self.api.kubeconfig.token
        self.api = Api(self.kubeconfig)
        self.api.kubeconfig.token = token

    def _certificate(self):
        host, port = self.url.split("//", 1)[1].rsplit(":", 1)
        return ssl.get_server_certificate((host, int(port)))

    def set_token(self, token, kubeconfig=False):
        self.control("token", {"token": token, "kubeconfig": kubeconfig})
        self.api.kubeconfig.token = token

    def close_watches(self, how="cut", match=None):
        self.control("connections", {"close": how, **({"match": match} if match else {})})
