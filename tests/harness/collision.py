# SPDX-License-Identifier: Apache-2.0
"""Two contents that had the same fingerprint before hashes had a key: found in two seconds, by Wagner's generalized birthday over
the members a to p, each with one of 16,384 values. The place does not matter: a spec, or the data of a ConfigMap."""
MEMBERS = "abcdefghijklmnop"
DENY = {"policy": "deny", **dict.fromkeys(MEMBERS, "0")}
ALLOW = {"policy": "allow", **dict(zip(MEMBERS, "0 5039 5542 2640 7751 14486 15620 2959 2009 8128 10190 15396 4414 12851 2760 14272".split(),
                                       strict=True))}
