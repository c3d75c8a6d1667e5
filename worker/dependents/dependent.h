/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One dependent of an object: what the handler asked for, what the object's annotation remembers, and the body
 * that is applied. Pure data: nothing here asks the API server anything.
 */
#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/text.h"
#include "kube/resource.h"
#include "object/scan.h"

#define DEPENDENTS_MAX 1000 /* of one object */

struct dependent {
        struct span text; /* as the handler wrote it; start NULL: it is only remembered */
        size_t index;     /* in the answer */
        char *api_version, *kind;
        char *namespace_name; /* "" for an object of the cluster, and where the handler gave none */
        char *name;
        int rank;                      /* where it stands in the order of kinds */
        struct kube_resource resource; /* plural NULL: not known yet */
        unsigned lookups;              /* of its kind, in this run */
        bool recorded, applied, failed;
        bool namespace_filled; /* the handler gave none */
        bool is_new;           /* before this run it was none of the object's */
        /* for undoing: settle.h */
        bool looked;    /* whether it was there before is known */
        bool touched;   /* this attempt has made or changed it */
        bool settled;   /* it is over: gone or not ours, undone, or ready */
        bool unready;   /* ... when it was applied */
        bool in_store;  /* it was looked at there: each change of it is told */
        char *uid;      /* as it was looked at, or after that; "" and NULL: unknown */
        char *version;  /* before that */
        char *previous; /* what we had applied before; NULL: it was not there */
        char *kept;  /* of what is confidential: the id of that (lib/os/kept.h); "" = it is lost; NULL: it is
                        not confidential, or was not there */
        char *shown; /* its version after our apply, where it is to become ready; "" and NULL: unknown */
        bool lost;   /* it was there, and nobody knows any more what it was */
};

struct dependent_list {
        struct dependent *item;
        size_t count;
};

/* The owner, and what its dependents carry. */
struct dependent_owner {
        const char *api_version, *kind, *uid;
        char *namespace_name, *name;    /* namespace "" for an object of the cluster */
        char set[64];                   /* the ApplySet id */
        const char *operator_name, *id; /* of the watch, if it has one: noted on dependents; NULL */
};

/* The answer's `children` as a tree: 0, or -EINVAL with the place of what is wrong. */
int dependents_check(const cJSON *array, struct error *error);

/* `array`: the same as text, checked. In the order in which they are to be applied. */
int dependent_list_from_answer(struct span array, struct dependent_list *ret);
/* From the annotation's value; what cannot be understood in it is left out. In the order of kinds. */
int dependent_list_from_record(const char *record, struct dependent_list *ret);
void dependent_list_done(struct dependent_list *list);

/* Adds it; its texts are taken over, also on failure. */
int dependent_list_add(struct dependent_list *list, struct dependent *dependent);

bool dependent_is_same(const struct dependent *a, const struct dependent *b);      /* whatever its version */
bool dependent_is_same_kind(const struct dependent *a, const struct dependent *b); /* likewise */
bool dependent_list_has(const struct dependent_list *list, const struct dependent *dependent);

/* Appends "v1/ConfigMap/default/a" to a comma separated list. */
void dependent_record_add(struct text *record, const struct dependent *dependent);
/* ... and "Deployment.apps", once each, as ApplySets have it. */
void dependent_group_kinds_add(struct text *list, const struct dependent *dependent);

int dependent_owner_init(struct dependent_owner *owner, const char *api_version, const char *kind,
                         const char *uid, const char *key);
void dependent_owner_done(struct dependent_owner *owner);
/* Whether the API server takes an owner reference for it as what it is. */
bool dependent_may_refer(const struct dependent_owner *owner, const struct dependent *dependent);
/* What is applied: the handler's text with the set's label and, where it may be, the owner reference. */
int dependent_body(const struct dependent_owner *owner, const struct dependent *dependent, struct text *out);

/* child-secret.c: a Secret whose stringData is data. 1; 0: it has none, or it cannot be moved. */
int secret_data_body(struct span object, struct text *out);
/* The same body, for the object with this UID alone: the API server applies it to no other, and makes none.
 */
int dependent_body_for(const struct text *body, const char *uid, struct text *out);
bool dependent_is_owner(const struct dependent *dependent, const struct dependent_owner *owner);

/* "ConfigMap default/a" */
const char *dependent_describe(const struct dependent *dependent, char *buffer, size_t size);
