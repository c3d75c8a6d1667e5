/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/notice.h"

#include <stdio.h>

#include "base/duration.h"

void notice_refused_credential(struct child *child, const struct kube_error *error, uint64_t serial,
                               uint64_t *asked)
{
        struct message_refresh refresh = {.serial = serial};

        if (error->http_status != 401 || serial == 0 || *asked == serial)
                return;
        *asked = serial;
        (void)child_send(child, MESSAGE_REFRESH, &refresh);
}

uint64_t notice_throttle(struct child *child, struct kube_client *client, const struct kube_error *error)
{
        uint64_t wish = kube_error_wish_usec(error);
        struct message_throttle throttle = {.resource = error->resource, .reason = error->message};
        char code[32];

        if (wish == 0)
                return 0;
        snprintf(code, sizeof(code), "HTTP %d", error->http_status);
        if (!error->of_read)
                throttle.reason = code; /* the words may quote what was written, which may be a Secret */
        throttle.until_boottime = clock_boottime_usec() + wish;
        kube_client_throttle(client, error->resource ? error->resource : "", throttle.until_boottime);
        (void)child_send(child, MESSAGE_THROTTLE, &throttle);
        return throttle.until_boottime;
}
