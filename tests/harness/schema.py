# SPDX-License-Identifier: Apache-2.0
"""The installed JSON Schemas: each request that a test records is held against the one, answers against the other."""
import json

import jsonschema

from .setup import SOURCE


def _validator(name):
    schema = json.loads((SOURCE / "schema" / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


REQUEST = _validator("request.json")
ANSWER = _validator("answer.json")


def check_request(request):
    REQUEST.validate(request)
    return request
