/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Messages between processes: structs, encoder and decoder, all generated from ipc/message-table.h.
 *
 * Deny by default: the decoder accepts exactly what the table says (type known, field count and types
 * exact, numbers of an enum below its end, text without NUL, valid UTF-8, size within the cap); anything
 * else is -EBADMSG, and the receiver ends the sender. It never allocates more than a small multiple of the
 * packet's size.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/message-table.h"
#include "ipc/role.h"
#include "ipc/run-reason.h"

#define PROTOCOL_VERSION UINT64_C(11)

enum message_type {
        MESSAGE_INVALID,
#define M(NAME, name, senders, receivers, cap, states) MESSAGE_##NAME,
        MESSAGE_TABLE(M)
#undef M
                MESSAGE_TYPE_COUNT
        };

enum change_kind {
        CHANGE_UPDATED,    /* added or changed; the fingerprint tells whether a run is due */
        CHANGE_DELETED,    /* this UID is gone */
        CHANGE_UNSELECTED, /* this UID left the selection; it is forgotten */
        CHANGE_CHILD,      /* an object that this UID owns has changed */
        CHANGE_KIND_COUNT
};

enum trigger { TRIGGER_ESSENCE, TRIGGER_ANY, TRIGGER_JQ, TRIGGER_GENERATION, TRIGGER_COUNT };

/* How a watch is. */
enum watch_health {
        WATCH_HEALTHY,
        WATCH_DEGRADED, /* does not work for now, is retried; fatal past its deadline */
        WATCH_ABSENT,   /* the server does not serve this resource, and it is not required */
        WATCH_FAILED,   /* past its deadline and isolated: retried, loudly, while the others go on */
        WATCH_HEALTH_COUNT
};

/* Our finalizer on an object that lives or goes, where it is not as its watch wants it. */
enum finalizer_state {
        FINALIZER_FINE, /* or not looked at */
        FINALIZER_MISSING,
        FINALIZER_LEFT_OVER, /* of a configuration that wanted it */
        FINALIZER_STATE_COUNT
};

/* How a handler is run; the same request and answer for all. */
enum handler_kind { HANDLER_EXEC, HANDLER_SERVE, HANDLER_PLUGIN, HANDLER_KIND_COUNT };

enum run_action {
        ACTION_RECONCILE,
        ACTION_FINALIZE,
        ACTION_DELETED,
        ACTION_UNSELECTED,
        ACTION_RELEASE,
        ACTION_FINALIZER, /* ours alone is put on or taken off, as the watch wants it; no handler */
        ACTION_COUNT
};

/* After so many RESULT_BEHIND in a row, a second in all, a store is not expected to catch up soon. */
#define BEHIND_MAX 50

/* A watcher keeps this much of its credit for a key of another namespace than the last one that it announced. */
#define CREDIT_SPARE 1

enum run_result {
        RESULT_SUCCESS,
        RESULT_RETRY,     /* failed; again after the object's backoff */
        RESULT_PERMANENT, /* failed; not again until the object changes */
        RESULT_STALE,     /* the object is not in the store any more (or has another UID): nothing ran */
        RESULT_CONFLICT,  /* the object changed between read and write: again with the newest version */
        RESULT_CANCELLED, /* CANCEL or STOP came first; not counted as an attempt */
        RESULT_SETTLING, /* not over: it goes on after settle_after, as the same attempt, without a worker */
        RESULT_UNRECOVERABLE, /* the server refused our own write for good */
        RESULT_BEHIND,        /* the store does not show our own last write yet: nothing ran */
        RESULT_UNNEEDED, /* it was due because of related objects, but none that it depends on has changed */
        RESULT_STOP,     /* the handler wants the operator to end */
        RESULT_RETURNED, /* it waited for the handler of another run, and its own has not begun */
        RESULT_UNAVAILABLE, /* the server or the network could not take our request, or objects of others make it too large:
                               no failure of the object or the handler */
        RESULT_FORBIDDEN, /* the server refuses us, not what we ask for: 401, 403 */
        RESULT_COUNT
};

/* What a handler does to a metric of its own. */
enum metric_action {
        METRIC_SET,     /* a gauge */
        METRIC_ADD,     /* to a counter */
        METRIC_OBSERVE, /* in a histogram */
        METRIC_REMOVE,  /* the series with these labels goes */
        METRIC_ACTION_COUNT
};

/* What an operator does to a child of an object, or to an object of others for it. */
enum child_write {
        CHILD_CREATED,
        CHILD_CHANGED,
        CHILD_DELETED,
        CHILD_ADOPTED,
        CHILD_RELEASED,
        PATCHED, /* an object of others */
        PATCH_RELEASED,
        CHILD_UNSURE, /* no clear answer came */
        CHILD_WRITE_COUNT
};

/* How a replica stands in the election (lib/election). */
enum lead_state {
        LEAD_UNKNOWN,   /* the record has not been read yet */
        LEAD_FOLLOWING, /* another replica leads, or none does yet */
        LEAD_LEADING,
        LEAD_LOST, /* we led; by `kill` nothing of ours may write any more */
        LEAD_STATE_COUNT
};

const char *lead_state_name(enum lead_state state); /* "unknown", "following" ... */
const char *change_kind_name(enum change_kind kind);
const char *run_action_name(
        enum run_action action); /* "reconcile", "finalize", "deleted", "unselected", "release" */
/* The action's name for handlers. own: own_action of the watch. */
const char *run_told_action(enum run_action action, const char *own);
const char *run_result_name(enum run_result result); /* "success", "retry" ... */
bool run_result_is_run(enum run_result result);      /* false: RESULT_RETURNED */
const char *child_write_name(enum child_write what); /* "created", "changed" ... */
const char *metric_action_name(enum metric_action action);
const char *watch_health_name(enum watch_health health); /* "healthy", "degraded" ... */
const char *trigger_name(enum trigger trigger);          /* "essence", "any", "jq" */

/* ---- the structs */
#define FIELD_U64(name)               uint64_t name;
#define FIELD_ENUM(type, count, name) enum type name;
#define FIELD_BOOL(name)              bool name;
#define FIELD_STR(name)               const char *name;
#define FIELD_BIN(name)                                                                                     \
        const void *name;                                                                                   \
        size_t name##_size;
#define FIELD_LIST(record, name)                                                                            \
        const struct record_##record *name;                                                                 \
        size_t name##_count;

#define R(record)                                                                                           \
        struct record_##record {                                                                            \
                RECORD_##record##_FIELDS(FIELD_U64, FIELD_ENUM, FIELD_BOOL, FIELD_STR, FIELD_BIN,           \
                                         FIELD_LIST)                                                        \
        };
RECORD_TABLE(R)
#undef R

#define M(NAME, name, senders, receivers, cap, states)                                                      \
        struct message_##name {                                                                             \
                MESSAGE_##name##_FIELDS(FIELD_U64, FIELD_ENUM, FIELD_BOOL, FIELD_STR, FIELD_BIN,            \
                                        FIELD_LIST)                                                         \
        };
MESSAGE_TABLE(M)
#undef M

/* A decoded message. All pointers inside point into memory that the message owns. */
struct message {
        enum message_type type;
        void *memory; /* private */
        union {
#define M(NAME, name, senders, receivers, cap, states) struct message_##name name;
                MESSAGE_TABLE(M)
#undef M
        };
};

const char *message_name(enum message_type type); /* "HELLO"; "INVALID" for anything out of range */
size_t message_size_cap(enum message_type type);

/* Whether `sender` may send this to `receiver` while the child at one end is in `state`. */
bool message_permitted(enum message_type type, enum role sender, enum role receiver, enum child_state state);

/* Encodes `fields` (a struct message_<name> that fits `type`) into `packet`, replacing what it held. NULL
 * strings are sent as "". Returns 0, -EMSGSIZE above the type's cap, -ENOMEM, or -EINVAL for text that is
 * not UTF-8 (senders clean foreign text with utf8_clean() first). */
int message_encode(enum message_type type, const void *fields, struct text *packet);

/* Decodes a packet. Returns 0, -EBADMSG or -ENOMEM; on success the caller ends with message_free(). */
int message_decode(const void *packet, size_t size, struct message **ret);

/* Decodes the first message of `packet`; *ret_used is where the next one begins. */
int message_decode_first(const void *packet, size_t size, size_t *ret_used, struct message **ret);

/* Wipes and frees; NULL is allowed. */
void message_free(struct message *message);
DEFINE_CLEANUP(struct message *, message_free);
#define _cleanup_message_ _cleanup_(message_free_pointer)

/* Replaces by '?', in place, each byte of invalid UTF-8, of control characters except tab, of line separators,
 * and of marks that change the direction of writing. */
void utf8_clean(char *text);
/* Whether utf8_clean() leaves this character of `length` bytes (utf8_sequence()) as it is. */
bool utf8_is_printable(const char *character, size_t length);
