# SPDX-License-Identifier: Apache-2.0
"""A candidate as client-go's leader election is one (tools/leaderelection, LeaseLock): it knows one Lease, and no member Leases."""
import datetime
import threading
import time

from .api import ApiError


class Candidate:
    """with Candidate(leases, name, identity, seconds) as it: it stands for election, and releases what it holds at the end."""

    def __init__(self, leases, name, identity, seconds, retry=0.5):
        self.leases, self.name, self.identity = leases, name, identity
        self.seconds, self.retry = seconds, retry
        self.leads = False
        self.lost = 0
        self._seen, self._seen_at = None, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.die()
        if self.leads:
            self._write(self.leases.get(self.name), "", 1)

    def die(self):
        """Nothing is released."""
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.is_set():
            try:
                leads = self._try()
            except ApiError as error:
                assert error.code in (404, 409), error
                leads = False
            self.lost += self.leads and not leads
            self.leads = leads
            self._end.wait(self.retry)

    def _try(self):
        try:
            lease = self.leases.get(self.name)
        except ApiError as error:
            if error.code != 404:
                raise
            self.leases.create(self.name, spec=self._spec(self.identity, self.seconds))
            return True
        spec = lease["spec"]
        if spec != self._seen:
            self._seen, self._seen_at = spec, time.monotonic()
        valid = time.monotonic() < self._seen_at + spec.get("leaseDurationSeconds", 0)
        if spec.get("holderIdentity") and spec["holderIdentity"] != self.identity and valid:
            return False
        self._seen = self._write(lease, self.identity, self.seconds)["spec"]
        return True

    def _write(self, lease, holder, seconds):
        """The whole object, as it was read; the annotations stay."""
        transitions = lease["spec"].get("leaseTransitions", 0) + (holder != lease["spec"].get("holderIdentity"))
        return self.leases.replace(lease | {"spec": self._spec(holder, seconds, transitions)})

    @staticmethod
    def _spec(holder, seconds, transitions=0):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"holderIdentity": holder, "leaseDurationSeconds": int(seconds), "acquireTime": now, "renewTime": now,
                "leaseTransitions": transitions}
