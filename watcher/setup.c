/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "kube/discovery.h"
#include "store/meta.h"
#include "watcher/failures.h"
#include "watcher/store-failure.h"

#define QUESTION_TIMEOUT_USEC (30 * USEC_PER_SEC)

static int on_setup_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->setup.timer = sd_event_source_disable_unref(watcher->setup.timer);
        setup_continue(watcher);
        return 0;
}

static void setup_succeeded(struct watcher *watcher)
{
        watcher->setup.refreshed = false;
        failures_clear(watcher, &watcher->failures);
}

static void setup_failed(struct watcher *watcher, const struct kube_error *error, uint64_t serial)
{
        int64_t delay = failures_note(watcher, &watcher->failures, error, serial);

        if (delay >= 0)
                retry_timer_start(watcher, &watcher->setup.timer, (uint64_t)delay, on_setup_timer, watcher);
}

/* ---- discovery */

static void on_discovered(struct kube_resource *resource, const struct kube_error *error,
                          const struct kube_response *response, void *userdata)
{
        struct watcher *watcher = userdata;

        watcher->setup.discovery = NULL;
        if (!resource) {
                setup_failed(watcher, error, response->credential_serial);
                return;
        }
        kube_resource_done(&watcher->resource);
        watcher->resource = *resource;
        if (!resource->namespaced && watcher->config->namespace_count > 0) {
                child_fatal(watcher->child, EXIT_CODE_CONFIGURATION, watcher->config->watch, NULL,
                            "%s %s is cluster-scoped and has no namespaces: remove 'namespaces' from "
                            "this watch",
                            watcher->config->api_version, watcher->config->kind);
                return;
        }
        watcher->discovered = true;
        setup_succeeded(watcher);
        setup_continue(watcher);
}

void setup_rediscover(struct watcher *watcher)
{
        if (!watcher->discovered)
                return;
        watcher->discovered = watcher->versioned = false; /* streams that live go on until they find out */
        setup_continue(watcher);
}

/* ---- version */

static int take_version(struct span key, struct span value, void *userdata)
{
        _cleanup_free_ char *text = NULL;
        unsigned *number = userdata;
        bool major = scan_string_equals(key, "major"), minor = scan_string_equals(key, "minor");

        if ((major || minor) && scan_string(value, &text) >= 0)
                number[minor] = (unsigned)strtoul(text, NULL, 10); /* "27+" of a provider is 27 */
        return 0;
}

/* An unreadable version is no failure: only WatchList depends on it. */
static void on_version(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                       void *userdata)
{
        struct watcher *watcher = userdata;
        unsigned number[2] = {0, 0};
        struct span whole;

        watcher->setup.version = NULL;
        if (watcher_is_over(watcher))
                return;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_withheld(&response->error)) {
                setup_failed(watcher, &response->error, response->credential_serial);
                return;
        }
        watcher->versioned = true;
        if (response->error.failure == KUBE_FAILURE_NONE &&
            scan_value(response->body, response->body_size, &whole) >= 0)
                (void)scan_members(whole, take_version, number);
        watcher->server_minor = number[0] == 1 ? number[1] : 0;
        setup_continue(watcher);
}

static int ask_version(struct watcher *watcher)
{
        struct kube_request request = {
                .method = "GET",
                .path = "/version",
                .timeout_usec = QUESTION_TIMEOUT_USEC,
                .on_done = on_version,
                .userdata = watcher,
        };

        return kube_client_start(watcher->client, &request, &watcher->setup.version);
}

/* ---- identity */

static char *uid_of(const char *body, size_t size)
{
        struct scan_object object;
        char *uid = NULL;

        if (scan_object(body, size, &object) < 0 || scan_string(object.uid, &uid) < 0 || uid[0] == '\0') {
                free(uid);
                return NULL;
        }
        return uid;
}

int setup_credential(struct watcher *watcher, const struct message_credential *credential)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        char *server;

        text_append(&text, credential->server, strlen(credential->server) + 1);
        text_append(&text, credential->certificate_authority, strlen(credential->certificate_authority) + 1);
        if (text.failed || asprintf(&server, "server-%016" PRIx64, XXH3_64bits(text.data, text.size)) < 0)
                return -ENOMEM;
        free(watcher->server);
        watcher->server = server;
        return 0;
}

void setup_retry(struct watcher *watcher)
{
        /* A fresh credential is tried at once, once; then the backoff holds again, whatever credentials
         * come. */
        if (watcher->setup.timer && !watcher->setup.refreshed) {
                watcher->setup.timer = sd_event_source_disable_unref(watcher->setup.timer);
                watcher->setup.refreshed = true;
        }
        setup_continue(watcher);
}

/* The weaker identity, of server and CA, is enough where the better one was not known: RBAC may show more
 * by now. */
static bool is_other_cluster(const struct watcher *watcher, const char *known)
{
        return known[0] != '\0' && strcmp(known, watcher->cluster) != 0 &&
               strcmp(known, watcher->server) != 0;
}

/* The store of another cluster is not a cache of this one. */
static int adopt_cluster(struct watcher *watcher)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        const struct message_config_watcher *config = watcher->config;
        int r;

        if (is_other_cluster(watcher, config->known_cluster)) {
                watcher->deletions_suspended = true;
                log_write(
                        LOG_ERR, MESSAGE_ID_DELETIONS_SUSPENDED,
                        LOG_FIELDS({"RECONCILED_WATCH", config->watch}),
                        "watch %s: %s is another cluster (%s) than the one its ledger belongs to (%s); "
                        "objects that are missing here are not treated as deleted. Point the operator back "
                        "to its cluster, or give it another state folder",
                        config->watch, kube_client_server(watcher->client), watcher->cluster,
                        config->known_cluster);
        }
        if (!is_other_cluster(watcher, watcher->meta.cluster))
                return 0;
        r = store_rebuild(watcher->store, &error);
        if (r < 0)
                return store_failed(watcher, r);
        store_meta_done(&watcher->meta);
        r = store_meta_get(watcher->store, &watcher->meta);
        return r < 0 ? store_failed(watcher, r) : 0;
}

/* The identity is asked for again before a later LIST. If RBAC hides it by now, server and CA stand for
 * it. */
static bool is_still_the_same(const struct watcher *watcher, const char *cluster)
{
        if (strcmp(cluster, watcher->cluster) == 0)
                return true;
        return strcmp(watcher->server, watcher->cluster_server) == 0 &&
               (strcmp(cluster, watcher->server) == 0 || strcmp(watcher->cluster, watcher->server) == 0);
}

static int identity_known(struct watcher *watcher, const char *cluster)
{
        if (watcher->cluster && !is_still_the_same(watcher, cluster))
                return child_fatal(
                        watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                        "another cluster (%s, it was %s) answers at %s; objects that it lacks are not "
                        "treated as deleted, and the operator restarts",
                        cluster, watcher->cluster, kube_client_server(watcher->client));
        if (!watcher->cluster) {
                watcher->cluster = strdup(cluster);
                watcher->cluster_server = strdup(watcher->server);
                if (!watcher->cluster || !watcher->cluster_server)
                        return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                                           "no memory");
                if (adopt_cluster(watcher) < 0 || watcher->driver->identified(watcher) < 0)
                        return -ECANCELED;
        }
        watcher->identified = true;
        setup_succeeded(watcher);
        setup_continue(watcher);
        return 0;
}

static void on_identity(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                        void *userdata)
{
        struct watcher *watcher = userdata;
        _cleanup_kube_error_ struct kube_error unreadable = KUBE_ERROR_NONE;
        _cleanup_free_ char *uid = NULL;

        watcher->setup.identity = NULL;
        if (watcher_is_over(watcher))
                return;
        if (response->error.failure == KUBE_FAILURE_NONE) {
                uid = uid_of(response->body, response->body_size);
                if (!uid)
                        kube_error_set(&unreadable, KUBE_FAILURE_PROTOCOL,
                                       "the answer about namespace kube-system cannot be read");
        }
        if (uid)
                (void)identity_known(watcher, uid);
        else if (kube_error_is_withheld(&response->error))
                (void)identity_known(watcher, watcher->server);
        else
                setup_failed(watcher, unreadable.failure ? &unreadable : &response->error,
                             response->credential_serial);
}

static int ask_identity(struct watcher *watcher)
{
        struct kube_request request = {
                .method = "GET",
                .path = "/api/v1/namespaces/kube-system",
                .timeout_usec = QUESTION_TIMEOUT_USEC,
                .on_done = on_identity,
                .userdata = watcher,
        };

        return kube_client_start(watcher->client, &request, &watcher->setup.identity);
}

void setup_identify(struct watcher *watcher)
{
        watcher->identified = false;
        setup_continue(watcher);
}

/* ---- the order of it */

void setup_continue(struct watcher *watcher)
{
        int r = 0;

        if (!kube_client_has_credential(watcher->client) || watcher->setup.discovery ||
            watcher->setup.version || watcher->setup.identity || watcher->setup.timer)
                return;
        if (!watcher->discovered || !watcher->versioned || !watcher->identified)
                failures_held(watcher, &watcher->failures);
        if (!watcher->discovered)
                r = kube_discovery_start(watcher->client, watcher->config->api_version,
                                         watcher->config->kind, on_discovered, watcher,
                                         &watcher->setup.discovery);
        else if (!watcher->versioned)
                r = ask_version(watcher);
        else if (!watcher->identified)
                r = ask_identity(watcher);
        else
                watcher->driver->set_up(watcher);
        if (r < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "a request cannot be started: %s", strerror(-r));
}
