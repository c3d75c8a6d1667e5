/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECONCILED_KIT_H
#define RECONCILED_KIT_H
/*
 * Handlers of reconciled in C: docs/kits.md. Build reconciled-kit.c and reconciled-kit-json.c with your own source,
 * and with -pthread.
 *
 *     static struct rk_value *widget(struct rk_request *request)
 *     {
 *             long long size;
 *             struct rk_value *wrong =
 *                     rk_want_integer(request, rk_get(rk_get(request->object, "spec"), "size"), "spec.size", &size);
 *
 *             if (wrong)
 *                     return wrong;
 *             if (size < 0)
 *                     return rk_permanent(request, "spec.size is negative");
 *             return rk_build(request, "{'status': {'size': %lld}}", size);
 *     }
 *
 *     int main(void)
 *     {
 *             return rk_serve(&(struct rk_handler){.reconcile = widget});
 *     }
 *
 * The same program is a handler for `exec` and for `serve`: a request with an id asks for one line and goes on, a
 * request without one is the only one. It answers one after the other; rk_serve_parallel() runs the functions in threads,
 * for different objects.
 *
 * Memory: values and texts belong to the request and go when its answer is written. Nothing is to be freed. Without
 * memory the process ends. A request and its values belong to one thread.
 */
#include <stdbool.h>
#include <stddef.h>

struct rk_value; /* a value of JSON */
struct rk_block; /* the memory of a request */

/* As in schema/request.json; keys that are not there are NULL or 0. */
struct rk_request {
        long long id;      /* private to the kit; 0: the handler was started for this request */
        long long version; /* 1 */
        const char *action;
        const char *reason;
        long long attempt;
        const char *last_error;
        const char *watch;
        long long epoch; /* with several replicas: of the one that leads */
        bool dry_run;    /* change nothing but by the answer */
        const struct rk_value *children;
        const struct rk_value *related;
        const struct rk_value
                *previous; /* with `previous: true`: as it was given at the last success; NULL: not known */
        const struct rk_value *object;

        const char *name, *namespace_name, *uid; /* of the object; never NULL */
        const struct rk_value *whole;            /* the request with all its keys */
        struct rk_block *memory;                 /* private to the kit */
};

/* Returns the answer, or NULL: there is nothing to say. */
typedef struct rk_value *rk_function(struct rk_request *request);

struct rk_schedule {
        const char *name;      /* in the configuration; NULL ends the list */
        rk_function *function; /* its time has come, and the object is its ConfigMap */
};

/* Reconcile must be there, unless there are only schedules and startup. Finalize, deleted and unselected change nothing
 * without a function. */
struct rk_handler {
        rk_function *reconcile;  /* brings the world in line with the object */
        rk_function *finalize;   /* cleans up; the object goes when it has returned */
        rk_function *deleted;    /* the object is gone; for watches without a finalizer */
        rk_function *unselected; /* the watch does not select the object any more */
        rk_function *
                startup; /* the operator has started, and all other handlers wait; the object is a ConfigMap of its own */
        const struct rk_schedule *schedules; /* or NULL */
};

/* Answers requests until there are no more. Call it once; returns the exit status of the process. What anybody prints
 * to standard output from here on goes to standard error, and standard input is empty. */
int rk_serve(const struct rk_handler *handler);

/* As rk_serve(), and answers up to `parallel` requests at once (1 to 128), where handler.parallel of the configuration
 * sends as many. With 1 the functions run in the main thread. With more they run in threads, for different objects, and
 * must be fit for that: what they share needs a lock, and strtok(), setenv() or a client library may be unfit. rk_serve()
 * is for all other handlers.
 *
 * A crash or exit() ends the process, and the operator asks for each of its requests again, alone. With SIGTERM the
 * process ends when the requests in work have their answers; the function may not return then. */
int rk_serve_parallel(const struct rk_handler *handler, int parallel);

/* ---- failures: answers, too */

/* This run has failed and is tried again after `retry_after_msec`, or, for 0, after the object's backoff. */
__attribute__((format(printf, 3, 4))) struct rk_value *rk_temporary(struct rk_request *request,
                                                                    long long retry_after_msec,
                                                                    const char *format, ...);

/* This run has failed, and so will each other one until the object or the handler changes. */
__attribute__((format(printf, 2, 3))) struct rk_value *rk_permanent(struct rk_request *request,
                                                                    const char *format, ...);

/* ---- logging: each line is a record of the operator's log, which has the object's fields already. In the threads of
 * rk_serve_parallel() each line begins with the object's key: the operator cannot know whose line it is. */

__attribute__((format(printf, 1, 2))) void rk_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void rk_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void rk_error(const char *format, ...);

/* ---- reading: NULL is taken for a value that is not there */

const struct rk_value *rk_get(const struct rk_value *object, const char *key);
const char *rk_text(const struct rk_value *value,
                    const char *otherwise); /* if it is no string, or holds a NUL */
/* otherwise: also for 1e21 and 101.0. To check what somebody wrote into a spec, use rk_want_integer(). */
long long rk_integer(const struct rk_value *value, long long otherwise); /* if it is no integer that fits */
/* NULL, and *ret is the integer; or *ret is 0, and the answer to return is a permanent error with the name ("spec.size"):
 * the value is missing, is no integer, or needs more than 64 bits. */
struct rk_value *rk_want_integer(struct rk_request *request, const struct rk_value *value, const char *name,
                                 long long *ret);
double rk_number(const struct rk_value *value, double otherwise); /* if it is no number */
bool rk_boolean(const struct rk_value *value, bool otherwise);    /* if it is neither true nor false */
bool rk_is_null(const struct rk_value *value);                    /* null, or not there */
size_t rk_count(const struct rk_value *list);                     /* entries, or members of an object */
const struct rk_value *rk_at(const struct rk_value *list, size_t index); /* entry, or value of a member */

/* ---- building */

/* Makes a value from JSON in which strings may have single quotes, too, and a value may be one of
 *
 *     %s  const char *, NULL: null        %d  int          %lld  long long
 *     %v  a value, NULL: null             %b  bool         %f    double
 *
 * %s may be a key as well. A mistake in the template ends the process. */
struct rk_value *rk_build(struct rk_request *request, const char *template, ...);

/* A shallow copy of a list or an object: it shares its entries with the original, and may get more of its own. */
struct rk_value *rk_copy(struct rk_request *request, const struct rk_value *value);

/* Adds to the end of a list. */
void rk_append(struct rk_request *request, struct rk_value *list, const struct rk_value *entry);

/* Adds a member, or replaces its value. */
void rk_set(struct rk_request *request, struct rk_value *object, const char *key,
            const struct rk_value *value);

/* ---- testing */

/* Whether the function answers so, whatever the order of keys; if not, standard error has both. `object` and `expected`
 * are texts as of rk_build(), without arguments. What a request has besides the object is filled in. */
bool rk_answers(rk_function *function, const char *action, const char *object, const char *expected);

#endif
