/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a fiber asks the API server: sent, waited for, and the answer returned. */
#include "base/text.h"
#include "fiber/fiber.h"
#include "kube/search.h"

struct kube_answer {
        struct kube_response response; /* its body is the one below, or "" */
        struct text body;
};

/*
 * `request` without callbacks: the whole body is collected. Or with on_data, which the loop calls, also after the fiber
 * was cancelled, until that has gone on. Its path must live as long as the wait. The client must outlive the wait: who
 * frees it cancels its fibers first.
 *
 * 0: it has ended, well or not, as ret->response says; the caller owns *ret. Else *ret is empty: -ECANCELED, the fiber
 * is ending (then nothing was sent) or was cancelled (then the server may have carried the request out); -ENOMEM;
 * -ENOKEY, there is no credential yet; -ELIBACC, there is no libcurl.
 */
_warn_unused_ int kube_ask(struct kube_client *client, const struct kube_request *request,
                           struct kube_answer *ret) _suspends_;
void kube_answer_done(struct kube_answer *answer);
#define KUBE_ANSWER_EMPTY                                                                                   \
        {                                                                                                   \
                .response = {.error = KUBE_ERROR_NONE, .body = "" }                                         \
        }
#define _cleanup_kube_answer_ _cleanup_(kube_answer_done)
