/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/lease-watch.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"

static void begin(struct lease_watch *watch);

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        begin(userdata);
        return 0;
}

static int on_data(struct kube_transfer *transfer _unused_, const char *bytes _unused_, size_t size _unused_,
                   void *userdata)
{
        const struct lease_watch *watch = userdata;

        watch->on_change(watch->userdata);
        return 0;
}

static void on_done(struct kube_transfer *transfer _unused_, const struct kube_response *response _unused_,
                    void *userdata)
{
        struct lease_watch *watch = userdata;
        int r;

        watch->transfer = NULL;
        watch->retry = sd_event_source_disable_unref(watch->retry);
        r = sd_event_add_time(watch->child->event, &watch->retry, CLOCK_BOOTTIME,
                              clock_boottime_usec() + watch->pause_usec, 1, on_retry, watch);
        if (r < 0)
                child_fatal(watch->child, EXIT_CODE_SOFTWARE, "no timer for a watch on a Lease: %s",
                            strerror(-r));
}

static void begin(struct lease_watch *watch)
{
        struct lease_request request;
        int r = -ENOMEM;

        lease_watch_make(watch->names, watch->name, &request);
        if (request.method)
                r = kube_client_start(watch->client,
                                      &(struct kube_request){.method = request.method,
                                                             .path = request.path,
                                                             .on_data = on_data,
                                                             .on_done = on_done,
                                                             .userdata = watch},
                                      &watch->transfer);
        lease_request_done(&request);
        if (r < 0)
                on_done(NULL, NULL, watch);
}

void lease_watch_set(struct lease_watch *watch, const char *name)
{
        if (strcmp(watch->name, name) == 0)
                return;
        snprintf(watch->name, sizeof(watch->name), "%s", name);
        kube_transfer_cancel(watch->transfer);
        watch->transfer = NULL;
        watch->retry = sd_event_source_disable_unref(watch->retry);
        if (name[0])
                begin(watch);
}
