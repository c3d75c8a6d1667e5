/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The roles at the ends of a channel. The values are bits, so that a set of roles is a mask. */
enum role {
        ROLE_SUPERVISOR = 1 << 0,
        ROLE_CREDENTIAL = 1 << 1,
        ROLE_WATCHER = 1 << 2,
        ROLE_WORKER = 1 << 3,
        ROLE_CONTROL = 1 << 4, /* reconciledctl, over the control socket */
        ROLE_GATEWAY = 1 << 5,
        ROLE_LEASE = 1 << 6,
};

#define ROLE_CHILDREN (ROLE_CREDENTIAL | ROLE_WATCHER | ROLE_WORKER | ROLE_GATEWAY | ROLE_LEASE)

/*
 * States of one child as the supervisor sees it, in this order; bits as well. A message that is not allowed in
 * its sender's state ends the sender (and with it the operator).
 */
enum child_state {
        CHILD_STARTING = 1 << 0,   /* forked; HELLO is awaited */
        CHILD_CONFIGURED = 1 << 1, /* HELLO came, CONFIG_* was sent; READY is awaited */
        CHILD_RUNNING = 1 << 2,    /* READY came */
        CHILD_STOPPING = 1 << 3,   /* STOP was sent; what is in flight may still arrive */
        CHILD_GONE = 1 << 4,       /* reaped; nothing is allowed */
};

const char *role_name(enum role role);                /* "supervisor", "watcher" ...; never NULL */
const char *role_title(enum role role);               /* in a sentence: "credential process" */
const char *child_state_name(enum child_state state); /* "starting" ...; never NULL */
