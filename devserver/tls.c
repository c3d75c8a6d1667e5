/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate of the server's own for 127.0.0.1 and localhost, made at each start; it is its own
 * authority. */
#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "devserver/server.h"

#define LIFETIME_SEC (10L * 365 * 24 * 3600)

static char *export(const gnutls_datum_t *datum)
{
        return strndup((const char *)datum->data, datum->size);
}

static int sign(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
        static const unsigned char loopback[4] = {127, 0, 0, 1};
        unsigned char serial[8] = {1};
        time_t now = time(NULL);

        if (getrandom(serial + 1, sizeof(serial) - 1, 0) < 0)
                return -errno;
        gnutls_x509_crt_set_version(certificate, 3);
        gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial));
        gnutls_x509_crt_set_activation_time(certificate, now - 3600);
        gnutls_x509_crt_set_expiration_time(certificate, now + LIFETIME_SEC);
        gnutls_x509_crt_set_dn(certificate, "CN=reconciled-devserver", NULL);
        gnutls_x509_crt_set_key(certificate, key);
        gnutls_x509_crt_set_basic_constraints(certificate, 1, -1);
        gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_CERT_SIGN);
        gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                             GNUTLS_FSAN_SET);
        gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, loopback, sizeof(loopback),
                                             GNUTLS_FSAN_APPEND);
        return gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0) < 0 ? -EIO : 0;
}

int tls_make(struct server *server, char **ret_authority, struct error *error)
{
        gnutls_x509_crt_t certificate = NULL;
        gnutls_x509_privkey_t key = NULL;
        gnutls_datum_t pem = {0}, key_pem = {0};
        int r = -EIO;

        if (gnutls_x509_privkey_init(&key) >= 0 && gnutls_x509_crt_init(&certificate) >= 0 &&
            gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) >= 0 &&
            sign(certificate, key) >= 0 &&
            gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem) >= 0 &&
            gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem) >= 0) {
                server->certificate = export(&pem);
                server->key = export(&key_pem);
                *ret_authority = export(&pem);
                r = server->certificate && server->key && *ret_authority ? 0 : -ENOMEM;
        }
        gnutls_free(pem.data);
        gnutls_free(key_pem.data);
        if (certificate)
                gnutls_x509_crt_deinit(certificate);
        if (key)
                gnutls_x509_privkey_deinit(key);
        return r < 0 ? error_set(error, r, "a certificate cannot be made") : 0;
}
