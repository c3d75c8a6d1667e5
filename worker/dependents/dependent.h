/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A dependent: one object that an answer wants beside its own (`children`), as the handler wrote it or as
 * the object's annotation remembers it, and the body that is applied. Pure data: no request is made here.
 */
#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/text.h"
#include "kube/path.h"
#include "object/identity.h"
#include "object/scan.h"

#define DEPENDENTS_MAX      1000       /* of one object */
#define DEPENDENT_MANIFEST  "manifest" /* the key of an object beside which more is said */
#define DEPENDENT_SET_LABEL "applyset.k8s.io/part-of"

struct dependent {
        struct span text; /* as the handler wrote it; start NULL: it is only remembered */
        size_t index;     /* in the answer */
        char *api_version, *kind;
        char *namespace_name; /* "" for an object of the cluster, and where the handler gave none */
        char *name;
        int rank;                      /* in the order of kinds */
        struct kube_resource resource; /* plural NULL: not known yet */
        unsigned lookups;              /* of its kind, in this run */
        bool recorded, applied, failed;
        bool stranger; /* only the list on the object knows its kind (confine.h); and: */
        bool beyond;   /* ... there are too many such kinds: it is left alone */
        bool doubted; /* only the list on the object names it, among too many: its label must tell (recall.h) */
        bool namespace_filled; /* the handler gave none */
        bool is_new;           /* it did not belong to the object before this run */
        bool adopt, release;   /* as the answer asks: adopts what nobody owns, or releases the child */
        bool judged;           /* whose it is has been found out; then: */
        bool absent;           /* ... it is not there, and is created */
        bool posted;           /* ... by a POST (dependents_needs_post()) */
        bool fields_left; /* it was created by a POST, and its managed fields are not those of an apply yet */
        bool foreign;     /* ... it is somebody else's, and is not touched */
        bool adopted;     /* ... somebody else has created it: it is released, never deleted */
        bool unreferred;  /* ... and its owner reference was taken off */
        bool remark;    /* ... and its mark names another watch, or a former object: that is changed first */
        bool renamed;   /* ... or it has a former name of the operator */
        bool inherited; /* ... it is the second of these: a former object's */
        bool unseen;    /* ... and the handler has not seen it: only its mark is written */
        bool adopting;  /* ... and it becomes ours with this run's apply */
        unsigned conflicts; /* in this run: how often it changed between a look and a write */

        /* for a parked attempt: parked/plan.h */
        bool looked;    /* whether it was there before is known */
        bool touched;   /* this attempt has made or changed it */
        bool settled;   /* done: it is gone or not ours, restored, or ready */
        bool unready;   /* when it was applied */
        bool in_store;  /* it was looked at there, so each change of it leads to a run */
        char *uid;      /* when it was looked at, or after that; "" and NULL: unknown */
        char *version;  /* likewise: it is written in this version only */
        char *before;   /* ... and what it was, until it is written; NULL */
        char *previous; /* what we had applied before; NULL: it was not there */
        char *kept;     /* the id of confidential content (parked/park.h); "": it is lost; NULL: it is not
                           confidential, or was not there */
        char *shown;    /* its version after our apply, where it is to become ready; "" and NULL: unknown */
        bool lost;      /* it was there, and what it was is no longer known */
};

struct dependent_list {
        struct dependent *item;
        size_t count;
};

/* The object that owns the dependents, and what each of them carries. */
struct dependent_owner {
        const char *api_version, *kind, *uid;
        char *namespace_name, *name;    /* namespace "" for an object of the cluster */
        char set[64];                   /* the ApplySet id */
        const char *operator_name, *id; /* id of the watch; NULL or "" if it has none */
        const char *former_names;       /* of the operator, with commas between them; NULL or "" */
};

/* Makes the list from `children` or `patches`, a text that was checked, in the order in which they are to be
 * applied. The items borrow from the text. */
int dependent_list_from_answer(struct span array, struct dependent_list *ret);
/* Makes the list from the annotation's value, in the order of kinds; entries that cannot be understood are
 * left out. */
int dependent_list_from_record(const char *record, struct dependent_list *ret);
void dependent_done(struct dependent *dependent);
void dependent_list_done(struct dependent_list *list);
/* Adds it; its strings are taken over, also on failure. */
int dependent_list_add(struct dependent_list *list, struct dependent *dependent);
/* Adds a copy of what identifies it, unless the list has it already. */
int dependent_list_copy(const struct dependent *dependent, struct dependent_list *list);
bool dependent_list_has(const struct dependent_list *list, const struct dependent *dependent);
/* The list's own item; NULL: it has none. */
struct dependent *dependent_list_find(const struct dependent_list *list, const struct dependent *dependent);

/* Whether both are the same object, or of the same kind; the version of the API makes no difference. */
bool dependent_is_same(const struct dependent *a, const struct dependent *b);
bool dependent_is_same_kind(const struct dependent *a, const struct dependent *b);
/* Requests from now on are for the object with this UID (a JSON string). */
int dependent_set_uid(struct dependent *dependent, struct span uid);

/* Appends "v1/ConfigMap/default/a" to a comma separated list. */
void dependent_record_add(struct text *record, const struct dependent *dependent);
/* Appends "Deployment.apps", unless the list has it: as ApplySets name the kinds of their members. */
void dependent_group_kinds_add(struct text *list, const struct dependent *dependent);

/* key: "namespace/name" or "name". api_version, kind and uid are borrowed. */
int dependent_owner_init(struct dependent_owner *owner, const char *api_version, const char *kind,
                         const char *uid, const char *key);
void dependent_owner_done(struct dependent_owner *owner);
/* Whether the text can be the name of an object, a namespace or a kind; NULL cannot. */
bool dependent_is_name(const char *text);
bool dependent_is_api_version(const char *text);
/* Appends the annotations of both marks, of each name of the operator, as removed but for `keep`; "" for none. */
void dependent_marks_off(const struct dependent_owner *owner, const char *keep, struct text *out);
bool dependent_is_owner(const struct dependent *dependent, const struct dependent_owner *owner);
/* Whether the API server accepts an owner reference from it to the owner. */
bool dependent_may_refer(const struct dependent_owner *owner, const struct dependent *dependent);

/* Appends what is applied: the handler's text with the set's label, the mark (ownership.h) and, on what the operator
 * creates, the owner reference where that is possible. */
int dependent_body(const struct dependent_owner *owner, const struct dependent *dependent, struct text *out);
/* Appends a patch of an object of others: the handler's text and nothing else. */
int dependent_body_to_patch(const struct dependent *dependent, struct text *out);
/* Appends a merge patch that marks it, in the version that was judged, and no more: label and mark. (An apply would take
 * away what an earlier one of ours has set.) What a former name of the operator has set becomes its own. */
int dependent_body_to_mark(const struct dependent_owner *owner, const struct dependent *dependent,
                           struct text *out);
/* Appends the same body for the object with this UID alone, and in this version alone if it is not NULL: the API server
 * applies it to no other object, and creates none. */
int dependent_body_for(const struct text *body, const char *uid, const char *version, struct text *out);
/* Appends the same body for an object that must not exist: the API server creates it, or answers 409. */
int dependent_body_to_create(const struct text *body, struct text *out);

/* Its key in a store; returns the buffer. */
const char *dependent_key(const struct dependent *dependent, char key[IDENTITY_KEY_MAX + 1]);
/* "ConfigMap default/a"; returns the buffer. */
const char *dependent_describe(const struct dependent *dependent, char *buffer, size_t size);
