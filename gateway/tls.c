/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/file.h"

#define FILE_SIZE_MAX ((size_t)256 * 1024)
#define CHAIN_MAX     16

/* What tells one state of a file from another; all zero: it is not there. */
struct stamp {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed; /* its rights count as well */
};

struct pair {
        gnutls_datum_t certificate, key; /* PEM */
        uint64_t begins, expires;        /* seconds since the epoch; 0: not known */
};

static struct {
        char *certificate_file, *key_file;
        struct stamp certificate_stamp, key_stamp; /* of the files when they were last read */
        struct pair pair;
        bool stale, told; /* told: that the pair in use has expired */
} tls;

/* ---- a pair */

static void datum_done(gnutls_datum_t *datum)
{
        if (datum->data)
                explicit_bzero(datum->data, datum->size);
        free(datum->data);
        *datum = (gnutls_datum_t){0};
}

static void pair_done(struct pair *pair)
{
        datum_done(&pair->certificate);
        datum_done(&pair->key);
}

static int read_tls_file(const char *path, gnutls_datum_t *ret, struct error *error)
{
        char *data;
        size_t size;
        int r = file_read(path, FILE_SIZE_MAX, &data, &size);

        if (r < 0)
                return error_set(error, r, "%s: %s", path, strerror(-r));
        *ret = (gnutls_datum_t){(unsigned char *)data, (unsigned)size};
        return 0;
}

static void take_times(struct pair *pair)
{
        gnutls_x509_crt_t first;
        time_t begins = 0, expires = 0;

        if (gnutls_x509_crt_init(&first) < 0)
                return;
        if (gnutls_x509_crt_import(first, &pair->certificate, GNUTLS_X509_FMT_PEM) >= 0) {
                begins = gnutls_x509_crt_get_activation_time(first);
                expires = gnutls_x509_crt_get_expiration_time(first);
        }
        gnutls_x509_crt_deinit(first);
        pair->begins = begins > 0 ? (uint64_t)begins : 0;
        pair->expires = expires > 0 ? (uint64_t)expires : 0;
}

/* NULL: clients may take it, as far as the time goes. */
static const char *untimely(const struct pair *pair)
{
        uint64_t now = (uint64_t)time(NULL);

        if (pair->expires > 0 && pair->expires <= now)
                return "has expired";
        return pair->begins > now ? "is not valid yet" : NULL;
}

/* Both are what they should be, and belong together. */
static int check_pair(struct pair *pair, struct error *error)
{
        gnutls_certificate_credentials_t credentials;
        int r = gnutls_certificate_allocate_credentials(&credentials);

        if (r < 0)
                return error_set(error, -ENOMEM, "%s", gnutls_strerror(r));
        r = gnutls_certificate_set_x509_key_mem(credentials, &pair->certificate, &pair->key,
                                                GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
        if (r < 0)
                return error_set(error, -EINVAL, "%s and %s are not a certificate and its key: %s",
                                 tls.certificate_file, tls.key_file, gnutls_strerror(r));
        take_times(pair);
        return 0;
}

static int read_certificate_pair(struct pair *ret, struct error *error)
{
        struct pair pair = {0};
        int r = read_tls_file(tls.certificate_file, &pair.certificate, error);

        if (r >= 0)
                r = read_tls_file(tls.key_file, &pair.key, error);
        if (r >= 0)
                r = check_pair(&pair, error);
        if (r < 0) {
                pair_done(&pair);
                return r;
        }
        *ret = pair;
        return 0;
}

/* ---- changes */

static struct stamp stamp(const char *path)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return (struct stamp){0};
        return (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_ctim};
}

static bool is_same_stamp(const struct stamp *a, const struct stamp *b)
{
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
               a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The stamps are taken first: a change meanwhile is seen the next time. */
static bool has_changed(void)
{
        struct stamp certificate = stamp(tls.certificate_file), key = stamp(tls.key_file);

        if (is_same_stamp(&certificate, &tls.certificate_stamp) && is_same_stamp(&key, &tls.key_stamp))
                return false;
        tls.certificate_stamp = certificate;
        tls.key_stamp = key;
        return true;
}

/* Logged once for each certificate: clients refuse it from then on. */
static void tell_untimely(void)
{
        const char *why = untimely(&tls.pair);

        if (why && !tls.told)
                log_write(LOG_ERR, MESSAGE_ID_CERTIFICATE_EXPIRED, NULL,
                          "the gateway's certificate %s %s; clients refuse it until a valid one takes its "
                          "place",
                          tls.certificate_file, why);
        tls.told = why;
}

static void keep_former_pair(const char *why)
{
        tls.stale = true;
        log_write(LOG_WARNING, MESSAGE_ID_CERTIFICATE_STALE, NULL,
                  "the gateway's new certificate cannot be used, the former one stays: %s", why);
}

static void read_anew(void)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct pair pair;

        if (read_certificate_pair(&pair, &error) < 0) {
                keep_former_pair(error_message(&error));
                return;
        }
        if (untimely(&pair) && !untimely(&tls.pair)) {
                (void)error_set(&error, -EINVAL, "%s %s", tls.certificate_file, untimely(&pair));
                keep_former_pair(error_message(&error));
                pair_done(&pair);
                return;
        }
        pair_done(&tls.pair);
        tls.pair = pair;
        tls.stale = false;
        log_info("the gateway's certificate has changed, and is used from now on");
}

void tls_refresh(void)
{
        if (!tls.certificate_file)
                return;
        if (has_changed())
                read_anew();
        tell_untimely();
}

/* ---- a handshake */

static int make_chain(gnutls_pcert_st **ret, unsigned *ret_count)
{
        gnutls_pcert_st *chain = gnutls_calloc(CHAIN_MAX, sizeof(*chain));
        unsigned count = CHAIN_MAX;
        int r;

        if (!chain)
                return GNUTLS_E_MEMORY_ERROR;
        r = gnutls_pcert_list_import_x509_raw(chain, &count, &tls.pair.certificate, GNUTLS_X509_FMT_PEM, 0);
        if (r < 0) {
                gnutls_free(chain);
                return r;
        }
        *ret = chain;
        *ret_count = count;
        return 0;
}

static int generate_key(gnutls_privkey_t *ret)
{
        gnutls_privkey_t key;
        int r = gnutls_privkey_init(&key);

        if (r < 0)
                return r;
        r = gnutls_privkey_import_x509_raw(key, &tls.pair.key, GNUTLS_X509_FMT_PEM, NULL, 0);
        if (r < 0)
                gnutls_privkey_deinit(key);
        else
                *ret = key;
        return r;
}

/* Each handshake gets copies of its own, which GnuTLS frees: a renewal in its middle does not harm it. */
static int retrieve(gnutls_session_t session _unused_, const struct gnutls_cert_retr_st *info _unused_,
                    gnutls_pcert_st **chain, unsigned *count, gnutls_ocsp_data_st **ocsp,
                    unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags)
{
        gnutls_privkey_t own;

        tls_refresh();
        if (generate_key(&own) < 0)
                return -1;
        if (make_chain(chain, count) < 0) {
                gnutls_privkey_deinit(own);
                return -1;
        }
        *key = own;
        *ocsp = NULL;
        *ocsp_count = 0;
        *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
        return 0;
}

void *tls_callback(void)
{
        return (void *)(uintptr_t)retrieve;
}

/* ---- begin and end */

int tls_start(const char *certificate_file, const char *key_file, struct error *error)
{
        tls.certificate_file = strdup(certificate_file);
        tls.key_file = strdup(key_file);
        if (!tls.certificate_file || !tls.key_file)
                return error_set(error, -ENOMEM, "no memory");
        (void)has_changed();
        return read_certificate_pair(&tls.pair, error);
}

bool tls_is_used(void)
{
        return tls.certificate_file;
}

bool tls_is_expired(void)
{
        return tls.certificate_file && untimely(&tls.pair);
}

bool tls_is_stale(void)
{
        return tls.stale;
}

uint64_t tls_expires(void)
{
        return tls.pair.expires;
}

void tls_stop(void)
{
        pair_done(&tls.pair);
        free(tls.certificate_file);
        free(tls.key_file);
        tls.certificate_file = tls.key_file = NULL;
}
