# SPDX-License-Identifier: Apache-2.0
"""Waiting for something that can be seen, and how patient the tests are. The only place of the tests that sleeps."""
import os
import time

# How many times slower than alone this run may be. ./check sets it: the number of lanes, three times that under sanitizers.
SLOWNESS = float(os.environ.get("RECONCILED_TEST_SLOWNESS", "1"))

# Seconds, before scaling, until whatever lost its parent must be gone: the promise is one second, and seeing it takes a moment. A
# supervisor that ends by itself has waited for all.
ENDED, AT_ONCE = 1.5, 0.5


class Timeout(AssertionError):
    """What was waited for did not happen."""


def scaled(seconds):
    """A deadline that follows the load."""
    return seconds * SLOWNESS


def wait_until(condition, what, deadline=20.0, interval=0.02):
    """Calls condition() until it returns something true, and returns that.

    what        ends the sentence "waited 20 s for ..."; may be a function, called for the message only
    deadline    seconds, before scaling
    An AssertionError, LookupError or OSError (ApiError is one) raised by the condition counts as "not yet"; the last
    one, or the last value, is part of the failure's message.
    """
    deadline = scaled(deadline)
    began = time.monotonic()
    end = began + deadline
    last = None
    while True:
        try:
            last = condition()
            if last:
                return last
        except (AssertionError, LookupError, OSError) as error:
            last = error
        now = time.monotonic()
        if now >= end:
            break
        # What takes long is looked at less often: a look may cost a process.
        time.sleep(interval if now < began + 1 else max(interval, 0.1))
    what = what() if callable(what) else what
    raise Timeout(f"waited {deadline:g} s for {what}; last seen: {last!r}")
