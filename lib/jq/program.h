/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * jq programs over objects, on libjq: what a run depends on (`trigger: {jq: ...}`), and which objects a
 * watch has to do with (`filter: ...`). A program sees the object without apiVersion and kind (items of a
 * LIST of built-in kinds lack them), or of an object that is known by its metadata alone, the metadata.
 * Numbers are doubles. The program comes from the configuration and is trusted; the object is not: a program
 * that fails on one object fails for that object alone.
 *
 * So no object makes a program costly, in the way that tenants could use: a program that needs more than JQ_TIME_MAX for one
 * object fails on it. That counts processor time, by SIGPROF and ITIMER_PROF of this process, which nothing else may use.
 * libjq looks at the time between two steps of its interpreter, not within what it does in C. What is done there is bounded
 * by the sizes that program.c names. What it cannot bound (`.[LIST]`, where a list is looked for in a list) takes some
 * seconds with JQ_VALUES_MAX, and a program that multiplies a text by a number of the object, or sets an element of a list
 * by such a number, needs as much memory as that number says: both is for who writes the program to avoid
 * (reconciled.yaml(5)). What never ends there is found by the heartbeat of its process.
 *
 * An object with more than JQ_VALUES_MAX values is none for programs: they fail on it with -E2BIG, and the message then
 * quotes nothing of it.
 *
 * Used by watchers and workers. The supervisor does not link libjq: it lets reconciled-jq look at programs.
 */
#include "base/error.h"
#include "ipc/message.h"
#include "object/bookkeeping.h"

#define JQ_TIME_MAX   200000 /* microseconds of processor time for one object */
#define JQ_VALUES_MAX 30000

struct jq_program;

/* -EINVAL with jq's own words when it does not compile; -ENOMEM. */
int jq_program_new(const char *text, struct jq_program **ret, struct error *error);
void jq_program_free(struct jq_program *program);
DEFINE_CLEANUP(struct jq_program *, jq_program_free);

/* Whether the first value that comes out is neither false nor null; none at all is false. -EBADMSG: it
 * fails on this object, and `error` says how; -E2BIG. */
int jq_program_test(struct jq_program *program, const char *json, size_t size, bool partial, bool *ret,
                    struct error *error);

/* Calls on_name for each value that comes out, which must be a string: -EBADMSG if one is not, or the program fails; -E2BIG.
 * A return other than 0 ends the program; a negative one is returned, without an error. */
int jq_program_names(struct jq_program *program, const char *json, size_t size, bool partial,
                     int (*on_name)(const char *name, void *userdata), void *userdata, struct error *error);

/* How an object's trigger fingerprint is made. */
struct trigger_basis {
        enum trigger trigger;
        struct bookkeeping ours;    /* left out */
        struct jq_program *program; /* the program of TRIGGER_JQ */
        bool partial;               /* only the metadata is known */
};

/* A deletion changes the fingerprint, whatever the program looks at. 0; 1 if the program fails on this object,
 * and its essence is taken instead (`error` says why). As lib/object/fingerprint.h otherwise. */
int trigger_fingerprint(const struct trigger_basis *basis, const char *json, size_t size,
                        uint64_t *ret_fingerprint, struct error *error);
