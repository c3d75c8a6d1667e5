/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is connected, and for how long. libmicrohttpd bounds the silence of a connection, not its age: a
 * client that sends a byte now and then would keep its place for ever, and a few hundred of them all places.
 * So a connection has an absolute deadline, and one above the limit takes the place of the oldest one: of
 * its own address first.
 */
#include <microhttpd.h>
#include <stdint.h>

#define CONNECTIONS_MAX         512U /* as libmicrohttpd bounds them */
#define CONNECTIONS_TOTAL       480U /* as many stay: there is room for those who come */
#define CONNECTIONS_PER_ADDRESS 64U
#define CONNECTION_AGE_USEC     UINT64_C(10000000)

/* For MHD_OPTION_NOTIFY_CONNECTION. One list a process. */
void connections_notify(void *userdata, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* Ends those that are too old at `now` (CLOCK_MONOTONIC). Returns when the next one will be; UINT64_MAX:
 * there is none. */
uint64_t connections_expire(uint64_t now);
