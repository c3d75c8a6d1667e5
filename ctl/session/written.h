/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run by hand has written, from the exchanges of its trace: each write beside the object as it was seen before. */
#include <cjson/cJSON.h>
#include <stdbool.h>

struct written {
        const char *method, *path,
                *subresource; /* path: without query and subresource; subresource: "status" or "" */
        int status;           /* of HTTP; a refused write has no other members than `error` */
        const char *error;
        const cJSON *before,
                *after; /* before: NULL: it was not seen, or there was none. after: NULL: it is deleted */
        const cJSON *sent;
        bool is_new;         /* the write has created it */
        bool partial;        /* of `before` there are metadata alone */
        bool redacted;       /* what is confidential is not in before and after ... */
        bool redacted_equal; /* ... and is known to be the same in both */
};

/* All is borrowed. */
typedef void (*written_t)(const struct written *written, void *userdata);

struct seen {
        cJSON *by_path; /* {object, digest}, as last seen */
        cJSON *given; /* the object that the handler was given; NULL: it is confidential, or not given yet */
        char *given_uid, *given_digest; /* of that object */
        bool dry_run; /* what is written is not kept: the next write finds the object as it was */
};

int seen_begin(struct seen *seen, bool dry_run); /* forgets what was before; 0 or -ENOMEM */
void seen_done(struct seen *seen);
/* A line of the trace of type run, request or exchange. Calls `visit` if the exchange is a write. 0 or -ENOMEM. */
int seen_take_line(struct seen *seen, const cJSON *line, const char *type, written_t visit, void *userdata);
