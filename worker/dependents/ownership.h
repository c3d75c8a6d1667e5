/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ownership of a child. The child itself says whose it is: the annotation OPERATOR/made, or
 * OPERATOR/adopted, names its owner, the owner's UID, the watch, and the child, because controllers and
 * people copy annotations. Neither the list on the owner nor the label nor the ledger proves anything. Pure
 * data: no request is made.
 */
#include "object/identity.h"
#include "worker/dependents/dependent.h"

#define MADE_NAME "made" /* OPERATOR/made: the operator has created it, and deletes it */
#define ADOPTED_NAME                                                                                        \
        "adopted" /* OPERATOR/adopted: somebody else has created it, and it is released, not deleted */

enum ownership {
        OWNERSHIP_FOREIGN, /* owned by somebody else, or by nobody: it is not changed */
        OWNERSHIP_OURS,    /* of this owner, and this watch */
        OWNERSHIP_TWIN,    /* of this owner, and another watch of its kind */
        OWNERSHIP_FORMER,  /* of a former owner of the same name, still unknown to the garbage collector */
        OWNERSHIP_FALLEN,  /* the same, with a reference to that owner: the garbage collector deletes it */
};

struct ownership_view {
        enum ownership whose;
        bool renamed;  /* its mark has a former name of the operator */
        bool made;     /* ours, a twin's or a former owner's: the operator has created it */
        bool claimed;  /* foreign: by a mark or a controller; else nobody has it, and it may be adopted */
        bool shared;   /* it refers to another owner besides */
        bool referred; /* it refers to this very owner */
        bool going;    /* it is being deleted */
        char uid[IDENTITY_UID_MAX + 1], version[IDENTITY_VERSION_MAX + 1];
        char id[64];      /* of the watch in the mark; "" if that has none */
        char holder[400]; /* text for people: who has it */
};

/* Appends the value of the mark. */
void ownership_mark(const struct dependent_owner *owner, const struct dependent *dependent,
                    struct text *out);
/* Whether an answer's text of a child has a mark already, copied from an object: the operator alone sets it. */
bool ownership_is_marked(const struct dependent_owner *owner, struct span text);
/* json: the child as the server or a store has it. -EBADMSG: it is no object. */
int ownership_judge(const struct dependent_owner *owner, const struct dependent *dependent, const char *json,
                    size_t size, struct ownership_view *ret);
/* Text for people: which manager other than the operator has written to the object last. */
void ownership_last_writer(const struct dependent_owner *owner, const char *json, char *buffer, size_t size);
