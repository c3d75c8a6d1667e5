/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The failure of a request to the API server, from whatever layer, as one object. Source of the Status
 * shape: k8s.io/apimachinery metav1.Status. A body that is not a Status (429 of priority and fairness is
 * plain text, proxies send HTML) still gives an error with the HTTP status and the body's first line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum kube_failure {
        KUBE_FAILURE_NONE,
        KUBE_FAILURE_HTTP,        /* the server answered with 4xx or 5xx: http_status, reason, message */
        KUBE_FAILURE_CONNECT,     /* not reachable: refused, no route, name not found, timeout to connect */
        KUBE_FAILURE_TLS,         /* certificate or handshake */
        KUBE_FAILURE_INTERRUPTED, /* the connection broke while the answer came */
        KUBE_FAILURE_TIMEOUT,
        KUBE_FAILURE_HELD, /* never sent: Retry-After holds it back for longer than the client waits */
        KUBE_FAILURE_CANCELLED,
        KUBE_FAILURE_PROTOCOL, /* an answer that cannot be understood */
        KUBE_FAILURE_COUNT
};

/* Where the cause of a failure is. */
enum kube_blame {
        KUBE_BLAME_SERVER, /* the server's, or the network's: it passes, and has nothing to do with the object */
        KUBE_BLAME_RIGHTS,  /* our rights: 401, 403 */
        KUBE_BLAME_REQUEST, /* what we ask for: it would be refused the same way forever */
        KUBE_BLAME_OBJECT,  /* this object's as it is now: it may pass */
};

struct kube_error {
        enum kube_failure failure;
        int http_status;                 /* 0 when no answer came; for an in-stream ERROR its code */
        bool names_object;               /* details.name is there: it is about that object */
        bool of_read;                    /* of a GET: no admission has looked at that */
        bool other_uid;                  /* the request named a UID, which the object does not have */
        char *reason;                    /* "NotFound", "Expired" ...; NULL when unknown; owned */
        char *message;                   /* for people; never NULL when failure != NONE; owned */
        bool resource_version_too_large; /* 504 with that cause, or with only that message */
        char *resource; /* the subject of Retry-After, as of kube_path_resource(); NULL: the whole server; owned */
        int retry_after_sec; /* 1 to KUBE_RETRY_AFTER_MAX, of header or details; -1 when absent */
};

/* The longest Retry-After that is obeyed, in seconds. */
#define KUBE_RETRY_AFTER_MAX 300

#define KUBE_ERROR_NONE ((struct kube_error){.retry_after_sec = -1})

/* Fills from an HTTP answer's body, or from the object of an in-stream ERROR event (http_status 0: the
 * Status' own code counts; kind and apiVersion may be missing). Never fails: what is not understood ends as
 * a message. Returns -ENOMEM only. */
int kube_error_from_status(struct kube_error *error, int http_status, const char *body, size_t size);
int kube_error_set(struct kube_error *error, enum kube_failure failure, const char *format, ...)
        _printf_(3, 4);
bool kube_error_is_gone(const struct kube_error *error); /* 410, whatever its reason */
/* The object is not there. A server that does not serve its kind (any more, or yet), and a proxy in front of
 * one, answer 404 as well, but without a Status, or with one that names no object: then it is unknown
 * whether the object is there. */
bool kube_error_is_not_found(const struct kube_error *error);
/* 403 or 404: the server does not answer the question, because we lack the right or a proxy leaves the path
 * out. For questions that we can do without. */
bool kube_error_is_withheld(const struct kube_error *error);
enum kube_blame kube_error_blame(const struct kube_error *error);

/* "; ..." with advice if we lack a right; "" with any other error. */
const char *kube_error_rights_advice(const struct kube_error *error);
/* The same request may succeed later: the server or the network is to blame, or the credential (401), which
 * is renewed. */
bool kube_error_is_passing(const struct kube_error *error);
/* How long the server asks us to wait, in microseconds: 429 and 5xx with Retry-After; 0 if it does not ask.
 * Other answers may have Retry-After as well (a 409), which concerns only their own request. */
uint64_t kube_error_wish_usec(const struct kube_error *error);
int kube_error_copy(const struct kube_error *from, struct kube_error *ret);
void kube_error_done(struct kube_error *error);
const char *kube_failure_name(enum kube_failure failure);
#define _cleanup_kube_error_ _cleanup_(kube_error_done)
