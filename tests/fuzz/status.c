/* SPDX-License-Identifier: Apache-2.0 */
/* What a server, or whatever answers in its place, may say about an error: always understood as some error,
 * with bounded texts of one line each. The first two bytes are the HTTP status. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube-error.h"
#include "kube/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *text)
{
        assert(strlen(text) <= 1024);
        for (; *text; text++)
                assert((unsigned char)*text >= ' ' || *text == '\t');
}

static void check_status(int http_status, const char *body, size_t size)
{
        struct kube_error error = KUBE_ERROR_NONE, copy;

        if (kube_error_from_status(&error, http_status, body, size) < 0)
                abort();
        assert(error.failure == KUBE_FAILURE_HTTP);
        assert(http_status == 0 ? error.http_status <= 599 : error.http_status == http_status);
        assert(error.retry_after_sec == -1 ||
               (error.retry_after_sec > 0 && error.retry_after_sec <= KUBE_RETRY_AFTER_MAX));
        check_line(error.message);
        if (error.reason)
                check_line(error.reason);
        if (kube_error_copy(&error, &copy) < 0)
                abort();
        kube_error_done(&copy);
        kube_error_done(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct kube_resource resource;
        char *body;

        if (size < 2)
                return 0;
        /* Exactly as large as it says, so that reading behind it is seen. */
        body = malloc(size - 2 + 1);
        if (!body)
                return 0;
        memcpy(body, data + 2, size - 2);
        body[size - 2] = '\0';
        check_status((data[0] << 8 | data[1]) % 600, body, size - 2);
        if (kube_resource_from_list("example.com/v1", "Widget", body, size - 2, &resource) == 0)
                kube_resource_done(&resource);
        free(body);
        return 0;
}
