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
        bool logged;
};

struct snapshot {
        struct snapshot *next;
        uint64_t id, resource_version;
        struct resource *resource;
        struct version **object;
        size_t count;
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
        uint64_t uid_counter;
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
bool wants_metadata_only(const struct request *request);
void write_metadata_only(struct text *out, const struct version *version);
bool version_is_number(const char *version);
bool list_wait_for_version(struct request *request, const char *version);
/* The keys that the request's namespace and selectors choose, each with its NUL; answers on an error. */
void list_collect_keys(struct request *request, struct text *keys);
void snapshots_free(struct server *server);
void watch_handle(struct request *request);
void watch_on_event(const struct event *event, void *userdata);
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
/* Deletion after the last finalizer: removes, then what depended on it. */
void object_finish_delete(struct server *server, struct resource *resource, const char *key, cJSON *last);
void object_request_delete(struct server *server, struct resource *resource, const char *key, bool orphan);

/* gc.c */
void gc_after_delete(struct server *server, const char *owner_uid, bool orphan);
bool gc_owner_is_valid(struct server *server, const cJSON *object, const char *namespace_name);
void gc_collect_object(struct server *server, struct resource *resource, const struct version *version);

/* crd.c */
int crd_changed(struct server *server, const cJSON *crd);
void crd_deleted(struct server *server, const cJSON *crd);
void crd_add_status(cJSON *crd);

/* builtin.c */
void builtin_add(struct server *server);

/* load.c */
cJSON *load_yaml_or_json(const struct text *text); /* NULL: neither */
int load_file(struct server *server, const char *path, struct error *error);

/* tls.c */
int tls_make(struct server *server, char **ret_authority, struct error *error);
