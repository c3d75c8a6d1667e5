# SPDX-License-Identifier: Apache-2.0
"""The installed JSON Schemas: each request that a test records is held against one, answers against another, and each
configuration that an operator starts with against the third."""
import functools
import json

import jsonschema
import yaml

from .setup import BUILD, SOURCE


def _validator(name, folder=SOURCE):
    return jsonschema.Draft202012Validator(json.loads((folder / "schema" / name).read_text(encoding="utf-8")))


REQUEST = _validator("request.json")
ANSWER = _validator("answer.json")


def check_request(request):
    REQUEST.validate(request)
    return request


@functools.cache
def configuration():
    """The schema of reconciled.yaml, which the build makes."""
    return _validator("configuration.json", BUILD)


def check_configuration(file):
    """A configuration that an operator starts with is right for editors as well."""
    if BUILD.parent == SOURCE:  # else it is another commit's build, whose keys are others
        configuration().validate(yaml.safe_load(file.read_text(encoding="utf-8")))
