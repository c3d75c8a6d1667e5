/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gateway's certificate. Files are looked at with each handshake and each heartbeat, and read again when
 * they have changed; a pair that does not fit (one file of a renewal is there, the other one is not yet)
 * leaves the former one in use, and so does one that has expired, while the former one is valid. One a
 * process: libmicrohttpd has no place for a pointer of ours.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* 0, or negative with the reason. */
int tls_start(const char *certificate_file, const char *key_file, struct error *error);
/* Reads files that have changed. A new failure is logged once. */
void tls_refresh(void);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK2. */
void *tls_callback(void);
bool tls_is_used(void);
bool tls_is_stale(void);    /* the present files are not in use */
bool tls_is_expired(void);  /* the certificate in use is not valid at this time: clients refuse it */
uint64_t tls_expires(void); /* seconds since the epoch; 0: not known */
void tls_stop(void);
