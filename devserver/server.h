/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The devserver's one struct and what a request goes through: http.c reads it whole, server_handle() is the
 * one place that every request passes (authentication, request log), then discovery, list, watch or an
 * object's verb.
 */
#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "base/error.h"
#include "devserver/storage.h"

struct server;

struct request {
        struct server *server;
        struct MHD_Connection *connection;
        const char *method, *url;
        struct text body;
        struct resource *resource;
        /* From the URL. Owned. */
        char *group, *version, *namespace_name, *plural, *name, *subresource;
        /* The answer. */
        int status;
        struct text answer;
        const char *content_type;
        struct watch *watch; /* instead of an answer */
        struct MHD_Response *delayed;
        bool logged, too_large;
};

struct snapshot {
        struct snapshot *next;
        uint64_t id, resource_version;
        struct resource *resource;
        struct version **object;
        size_t count;
};

/* What the collector has to look at. */
struct gc_list {
        struct gc_entry *entry;
        size_t count, allocated;
};

struct server {
        struct storage storage;
        sd_event *event;
        struct MHD_Daemon *daemon;
        struct watch *watch;
        struct snapshot *snapshot;
        uint64_t last_snapshot;
        char *token;
        FILE *request_log;
        uint64_t bookmark_usec;
        struct gc_list gc;
        char *certificate, *key; /* PEM, with TLS */
        sd_event_source *run_source, *run_timer, *epoll_source;
};

const char *request_argument(const struct request *request, const char *name); /* NULL when absent */
bool request_flag(const struct request *request, const char *name);

/* http.c */
int http_start(struct server *server, const char *address, uint16_t port, char **ret_url,
               struct error *error);
void http_stop(struct server *server);
void http_run_soon(struct server *server); /* something was resumed */

/* routes.c */
void server_handle(struct request *request);

/* status.c */
void answer_json(struct request *request, int status, cJSON *body); /* takes the body */
void answer_raw(struct request *request, int status, const char *json);
void answer_status(struct request *request, int code, const char *reason, const char *format, ...)
        _printf_(4, 5);
void answer_status_causes(struct request *request, int code, const char *reason, cJSON *causes,
                          const char *message);
void answer_not_found(struct request *request);
cJSON *status_object(int code, const char *reason, const char *message);

/* discovery.c */
bool discovery_handle(struct request *request);

/* list.c, watch.c */
void list_handle(struct request *request);
struct selector *list_selector(struct request *request); /* NULL: answered */
bool version_is_number(const char *version);
/* The keys that the request's namespace and selectors choose, each with its NUL; answers on an error. */
void list_collect_keys(struct request *request, struct text *keys);
void snapshots_free(struct server *server);
void watch_handle(struct request *request);
void watch_on_event(const struct event *event, void *userdata);
void watch_on_forget(const struct event *event, void *userdata);
struct MHD_Response *watch_response(struct watch *watch);
void watches_end(struct server *server, const struct resource *resource); /* NULL: all */
int watches_start(struct server *server);                                 /* bookmarks and timeouts */

/* objects.c */
void object_handle(struct request *request);
void object_create(struct request *request);
void object_delete(struct request *request, const char *key);
void object_delete_collection(struct request *request);
/* Adds what the server gives every new object; used by --load and by the server itself as well. */
struct version *object_insert(struct server *server, struct resource *resource, const char *namespace_name,
                              cJSON *object);
/* delete.c */
enum propagation { PROPAGATION_BACKGROUND, PROPAGATION_FOREGROUND, PROPAGATION_ORPHAN };

void object_request_delete(struct server *server, struct resource *resource, const char *key,
                           enum propagation propagation);
/* Whether an object whose deletion was asked for must stay: finalizers, what blocks it, what is in it. */
bool object_is_held(struct server *server, const cJSON *object);
/* Removes it. `last`: its last state, or NULL for the one that is stored. */
void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last);
/* Removes it, if its deletion was asked for and nothing holds it any more. */
void object_finish_if_free(struct server *server, struct resource *resource, const char *key);

/* gc.c */
void gc_look_later(struct server *server, struct resource *resource, const char *key);
void gc_look_at_dependents(struct server *server, const char *uid);
void gc_look_at_owners(struct server *server, const cJSON *object);
void gc_run(struct server *server); /* until there is nothing left to look at */
void gc_done(struct server *server);
bool gc_is_blocked(const struct server *server,
                   const char *uid);                    /* by a reference with blockOwnerDeletion */
void gc_orphan(struct server *server, const char *uid); /* its dependents forget it */

/* crd.c */
void crd_changed(struct server *server, const cJSON *crd);
/* Whose objects a CRD's are; NULL: it is not served. `name`: "widgets.example.com". */
struct resource *crd_table(struct server *server, const char *name);
void crd_deleted(struct server *server, const cJSON *crd);
void crd_add_status(cJSON *crd);

/* builtin.c */
void builtin_add(struct server *server);

/* load.c */
cJSON *load_yaml_or_json(const struct text *text); /* NULL: neither */
int load_file(struct server *server, const char *path, struct error *error);

/* tls.c */
int tls_make(struct server *server, char **ret_authority, struct error *error);
