/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the tests of the API client share: a loop, a server, a client, and a note of how a transfer ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client.h"
#include "tests/unit/kube/server.h"

struct fixture {
        sd_event *event;
        struct server server;
        struct kube_client *client;
        struct kube_transfer *transfer;
        /* how it ended */
        unsigned done;
        int http_status, on_data_result;
        struct kube_error error;
        uint64_t serial;
        bool repeated;
        size_t body_size;
        char body[4096]; /* its beginning, or what was streamed */
        size_t streamed;
        void (*in_data)(struct fixture *fixture);
        void (*in_done)(struct fixture *fixture);
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

struct message_credential fixture_credential(const char *server, const char *token);
void fixture_use(struct fixture *fixture, const struct message_credential *credential);

/* A GET of `path` that notes everything in the fixture; `streamed`: with on_data. */
struct kube_request fixture_request(struct fixture *fixture, const char *path, bool streamed);
void fixture_get(struct fixture *fixture, const char *path);
/* Turns the loop until *counter has reached `count`; fails after ten seconds. */
void fixture_wait(struct fixture *fixture, const unsigned *counter, unsigned count);
/* Turns the loop for this long. */
void fixture_turn(struct fixture *fixture, uint64_t usec);
