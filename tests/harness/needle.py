# SPDX-License-Identifier: Apache-2.0
"""Secrets whose content can be searched for."""
import base64
import contextlib
import os
import secrets


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def new_needle():
    return "needle" + secrets.token_hex(9)  # 24 bytes: of a multiple of three base64 looks the same wherever it stands


def secret(name, needle, **metadata):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}, "data": {"password": encoded(needle)}}


def found_on_disk(needle, *folders):
    """Files below these folders that hold it, as it is or in base64, wherever in their bytes."""
    marks = [needle.encode(), encoded(needle).encode()]
    found = []
    for folder in folders:
        for place, _, files in os.walk(folder):
            for name in files:
                path = os.path.join(place, name)
                if not os.path.isfile(path):
                    continue
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                    content = file.read()
                    if any(mark in content for mark in marks):
                        found.append(path)
    return found
