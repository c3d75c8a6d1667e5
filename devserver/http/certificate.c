/* SPDX-License-Identifier: Apache-2.0 */
/* An authority of the server's own, and certificates by it for 127.0.0.1 and localhost: made at each start,
 * and again when a test asks for it. */
#include "devserver/http/certificate.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "devserver/server.h"

#define LIFETIME_SEC (10L * 365 * 24 * 3600)

struct pair {
        gnutls_x509_crt_t certificate;
        gnutls_x509_privkey_t key;
};

static void pair_done(struct pair *pair)
{
        if (pair->certificate)
                gnutls_x509_crt_deinit(pair->certificate);
        if (pair->key)
                gnutls_x509_privkey_deinit(pair->key);
}

static int pair_init(struct pair *pair)
{
        return gnutls_x509_privkey_init(&pair->key) < 0 || gnutls_x509_crt_init(&pair->certificate) < 0
                       ? -ENOMEM
                       : 0;
}

static int export(const struct pair *pair, char **ret_certificate, char **ret_key)
{
        gnutls_datum_t certificate = {0}, key = {0};
        int r = -ENOMEM;

        if (gnutls_x509_crt_export2(pair->certificate, GNUTLS_X509_FMT_PEM, &certificate) >= 0 &&
            gnutls_x509_privkey_export2(pair->key, GNUTLS_X509_FMT_PEM, &key) >= 0) {
                free(*ret_certificate);
                free(*ret_key);
                *ret_certificate = strndup((const char *)certificate.data, certificate.size);
                *ret_key = strndup((const char *)key.data, key.size);
                r = *ret_certificate && *ret_key ? 0 : -ENOMEM;
        }
        gnutls_free(certificate.data);
        gnutls_free(key.data);
        return r;
}

static int import(struct pair *pair, const char *certificate, const char *key)
{
        gnutls_datum_t certificate_pem = {(unsigned char *)(uintptr_t)certificate,
                                          (unsigned)strlen(certificate)};
        gnutls_datum_t key_pem = {(unsigned char *)(uintptr_t)key, (unsigned)strlen(key)};

        return gnutls_x509_crt_import(pair->certificate, &certificate_pem, GNUTLS_X509_FMT_PEM) < 0 ||
                               gnutls_x509_privkey_import(pair->key, &key_pem, GNUTLS_X509_FMT_PEM) < 0
                       ? -EINVAL
                       : 0;
}

/* What every certificate has, and a key of its own. */
static int prepare_pair(struct pair *pair, const char *name)
{
        unsigned char serial[8] = {1};
        time_t now = time(NULL);

        if (getrandom(serial + 1, sizeof(serial) - 1, 0) < 0)
                return -errno;
        if (gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
                                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) < 0)
                return -EIO;
        gnutls_x509_crt_set_version(pair->certificate, 3);
        gnutls_x509_crt_set_serial(pair->certificate, serial, sizeof(serial));
        gnutls_x509_crt_set_activation_time(pair->certificate, now - 3600);
        gnutls_x509_crt_set_expiration_time(pair->certificate, now + LIFETIME_SEC);
        gnutls_x509_crt_set_dn(pair->certificate, name, NULL);
        gnutls_x509_crt_set_key(pair->certificate, pair->key);
        return 0;
}

static int sign(const struct pair *pair, const struct pair *authority)
{
        return gnutls_x509_crt_sign2(pair->certificate, authority->certificate, authority->key,
                                     GNUTLS_DIG_SHA256, 0) < 0
                       ? -EIO
                       : 0;
}

static int make_authority(struct server *server, struct pair *authority)
{
        int r = prepare_pair(authority, "CN=reconciled-devserver authority");

        if (r < 0)
                return r;
        gnutls_x509_crt_set_basic_constraints(authority->certificate, 1, -1);
        gnutls_x509_crt_set_key_usage(authority->certificate,
                                      GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
        r = sign(authority, authority);
        return r < 0 ? r : export(authority, &server->authority, &server->authority_key);
}

static int make_certificate(struct server *server, const struct pair *authority, struct pair *pair)
{
        static const unsigned char loopback[4] = {127, 0, 0, 1};
        int r = prepare_pair(pair, "CN=reconciled-devserver");

        if (r < 0)
                return r;
        gnutls_x509_crt_set_basic_constraints(pair->certificate, 0, -1);
        gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        gnutls_x509_crt_set_key_purpose_oid(pair->certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
        gnutls_x509_crt_set_subject_alt_name(pair->certificate, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                             GNUTLS_FSAN_SET);
        gnutls_x509_crt_set_subject_alt_name(pair->certificate, GNUTLS_SAN_IPADDRESS, loopback,
                                             sizeof(loopback), GNUTLS_FSAN_APPEND);
        r = sign(pair, authority);
        return r < 0 ? r : export(pair, &server->certificate, &server->key);
}

int certificate_make(struct server *server, bool new_authority, struct error *error)
{
        _cleanup_(pair_done) struct pair authority = {0}, pair = {0};
        int r = pair_init(&authority);

        if (r >= 0)
                r = pair_init(&pair);
        if (r >= 0)
                r = new_authority || !server->authority_key
                            ? make_authority(server, &authority)
                            : import(&authority, server->authority, server->authority_key);
        if (r >= 0)
                r = make_certificate(server, &authority, &pair);
        return r < 0 ? error_set(error, r, "a certificate cannot be made") : 0;
}

void certificate_renew_soon(struct server *server, bool new_authority)
{
        server->certificate_due = true;
        server->authority_due = new_authority;
}
