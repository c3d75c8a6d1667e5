/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer: building it, collecting the body, saying how it ended. */
#include "kube/transfer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/duration.h"
#include "ipc/message.h"
#include "kube/path.h"

#define NAME "warning:"
#define DATE "date:"

static uint64_t hash_of_text(const char *text)
{
        uint64_t hash = 0xcbf29ce484222325;

        for (; *text; text++)
                hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
        return hash;
}

/* Whether it is new. */
static bool warnings_note(struct warnings *warnings, const char *text)
{
        uint64_t hash = hash_of_text(text);
        size_t known = warnings->count < WARNINGS_MAX ? warnings->count : WARNINGS_MAX;

        for (size_t i = 0; i < known; i++)
                if (warnings->seen[i] == hash)
                        return false;
        warnings->seen[warnings->count++ % WARNINGS_MAX] = hash;
        return true;
}

/* Extracts the text of a header line (`Warning: 299 - "text"`) as one line of UTF-8, cut to WARNING_TEXT_MAX -
 * 1 bytes. False if it is another header. */
static bool warning_read(const char *line, size_t size, char ret[static WARNING_TEXT_MAX])
{
        const char *end = line + size, *at;
        size_t used = 0;

        if (size <= strlen(NAME) || strncasecmp(line, NAME, strlen(NAME)) != 0)
                return false;
        while (end > line && (end[-1] == '\r' || end[-1] == '\n'))
                end--;
        at = line + strlen(NAME);
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        /* The only code that a Kubernetes server sends: others come from caches on the way. */
        if (end - at < 4 || strncmp(at, "299 ", 4) != 0)
                return false;
        at = memchr(at, '"', (size_t)(end - at));
        if (!at)
                return false;
        for (at++; at < end && *at != '"' && used < WARNING_TEXT_MAX - 1; at++) {
                if (*at == '\\' && at + 1 < end)
                        at++;
                ret[used++] = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
        }
        ret[used] = '\0';
        utf8_clean(ret);
        return used > 0;
}

#define HEAD_MAX         ((size_t)512 * 1024) /* libcurl bounds what comes before the body, and nothing after it */
#define BODY_MAX_DEFAULT ((size_t)16 * 1024 * 1024) /* of one object, or a page of a list's metadata */
#define ERROR_BODY_MAX   ((size_t)1024 * 1024)

/* ---- the credential's copy */

static void wipe_secret(char **secret)
{
        if (*secret)
                explicit_bzero(*secret, strlen(*secret));
        free(*secret);
        *secret = NULL;
}

#define WIPE(name) wipe_secret(&credential->name);

void credential_wipe(struct kube_credential *credential)
{
        CREDENTIAL_TEXTS(WIPE)
        if (credential->header)
                curl_slist_free_all(credential->header);
        credential->header = NULL;
}

/* "Name:" without a value takes a header of libcurl's own away. */
static int append_header(struct curl_slist **list, const char *name, const char *value)
{
        _cleanup_free_ char *line = format_string(value ? "%s: %s" : "%s:", name, value);
        struct curl_slist *grown = line ? curl_slist_append(*list, line) : NULL;

        if (!grown)
                return -ENOMEM;
        *list = grown;
        return 0;
}

static int copy_headers(const struct message_credential *message, struct kube_credential *copy)
{
        int r = 0;

        for (size_t i = 0; i < message->header_count && r >= 0; i++) {
                const struct record_header *header = &message->header[i];

                /* A line break would begin another header. */
                r = strpbrk(header->name, "\r\n") || strpbrk(header->value, "\r\n")
                            ? -EINVAL
                            : append_header(&copy->header, header->name, header->value);
        }
        return r;
}

#define COPY(name)                                                                                          \
        copy.name = strdup(message->name);                                                                  \
        r = copy.name || r < 0 ? r : -ENOMEM;

int credential_copy(const struct message_credential *message, struct kube_credential *ret)
{
        struct kube_credential copy = {.serial = message->serial, .insecure = message->insecure};
        int r = copy_headers(message, &copy);

        CREDENTIAL_TEXTS(COPY)
        if (r < 0)
                credential_wipe(&copy);
        else
                *ret = copy;
        return r;
}

/* ---- list and life */

void transfer_link(struct kube_transfer *transfer)
{
        struct kube_client *client = transfer->client;

        assert(!transfer->next && !transfer->previous);
        transfer->next = client->transfer;
        if (client->transfer)
                client->transfer->previous = transfer;
        client->transfer = transfer;
}

void transfer_unlink(struct kube_transfer *transfer)
{
        if (transfer->next)
                transfer->next->previous = transfer->previous;
        if (transfer->previous)
                transfer->previous->next = transfer->next;
        else if (transfer->client->transfer == transfer)
                transfer->client->transfer = transfer->next;
        transfer->next = transfer->previous = NULL;
}

void transfer_free(struct kube_transfer *transfer)
{
        curl_easy_cleanup(transfer->easy);
        curl_slist_free_all(transfer->header);
        curl_slist_free_all(transfer->connect_to);
        text_done(&transfer->body);
        text_done(&transfer->sent);
        free(transfer->method);
        free(transfer->path);
        free(transfer->url);
        free(transfer);
}

static int keep_for_exchange(struct kube_transfer *transfer, const struct kube_request *request)
{
        transfer->method = strdup(request->method);
        transfer->path = strdup(request->path);
        if (!transfer->method || !transfer->path)
                return -ENOMEM;
        return request->body ? text_append(&transfer->sent, request->body, request->body_size) : 0;
}

int transfer_new(struct kube_client *client, const struct kube_request *request, struct kube_transfer **ret)
{
        struct kube_transfer *transfer = calloc(1, sizeof(*transfer));

        assert(request->method && request->path && request->path[0] == '/');
        if (!transfer)
                return -ENOMEM;
        transfer->client = client;
        transfer->on_data = request->on_data;
        transfer->on_accepted = request->on_accepted;
        transfer->on_done = request->on_done;
        transfer->userdata = request->userdata;
        transfer->asker = request->asker;
        transfer->confidential = request->confidential;
        transfer->timeout_usec = request->timeout_usec;
        transfer->reads = strcmp(request->method, "GET") == 0;
        transfer->body_max = request->body_max > 0 ? request->body_max : BODY_MAX_DEFAULT;
        transfer->easy = curl_easy_init();
        if (!transfer->easy || (client->on_exchange && keep_for_exchange(transfer, request) < 0)) {
                transfer_free(transfer);
                return -ENOMEM;
        }
        *ret = transfer;
        return 0;
}

/* ---- the request */

static int add_headers_of(struct kube_transfer *transfer, const struct kube_credential *credential)
{
        for (const struct curl_slist *line = credential->header; line; line = line->next) {
                struct curl_slist *grown = curl_slist_append(transfer->header, line->data);

                if (!grown)
                        return -ENOMEM;
                transfer->header = grown;
        }
        return 0;
}

static void note_warning(const struct kube_transfer *transfer, const char *line, size_t size)
{
        struct kube_client *client = transfer->client;
        char text[WARNING_TEXT_MAX];

        if (!client->on_warning || !warning_read(line, size, text))
                return;
        if (transfer->confidential)
                snprintf(text, sizeof(text), "%s", KUBE_WARNING_HIDDEN);
        if (warnings_note(&client->warnings, text))
                client->on_warning(text, transfer->asker, client->on_warning_userdata);
}

/* RFC 9110, 5.6.7: the one form that servers write. */
static void note_date(struct kube_transfer *transfer, const char *line, size_t size)
{
        char date[64];
        struct tm parts = {0};
        const char *end;

        if (size <= strlen(DATE) || size - strlen(DATE) >= sizeof(date) ||
            strncasecmp(line, DATE, strlen(DATE)) != 0)
                return;
        snprintf(date, sizeof(date), "%.*s", (int)(size - strlen(DATE)), line + strlen(DATE));
        end = strptime(date, " %a, %d %b %Y %H:%M:%S GMT", &parts);
        if (end && timegm(&parts) > 0)
                transfer->server_seconds = (uint64_t)timegm(&parts);
}

/* The empty line ends the head. A 100 Continue has one of its own, and so has a body in pieces, after its last one; a proxy's
 * answer is not shown here. */
static size_t on_head(char *line, size_t size, size_t count, void *userdata)
{
        struct kube_transfer *transfer = userdata;
        size_t total = size * count;
        long status = 0;

        if (transfer->cancelled)
                return 0;
        transfer->head_size += total;
        if (transfer->head_size > HEAD_MAX) {
                transfer->too_large = true;
                return 0;
        }
        if (total > 2 || line[0] == '\0' || !strchr("\r\n", line[0])) {
                note_warning(transfer, line, total);
                note_date(transfer, line, total);
                return total;
        }
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        if (transfer->on_accepted && !transfer->accepted && status >= 200 && status < 300) {
                transfer->accepted = true;
                transfer->on_accepted(transfer, transfer->userdata);
        }
        return transfer->cancelled ? 0 : total;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *userdata)
{
        struct kube_transfer *transfer = userdata;
        size_t total = size * count, max = transfer->body_max;
        long status = 0;

        if (transfer->cancelled)
                return 0;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status >= 200 && status < 300 && transfer->on_data) {
                if (transfer->on_data(transfer, bytes, total, transfer->userdata) >= 0 &&
                    !transfer->cancelled)
                        return total;
                transfer->stopped_by_owner = true;
                return 0;
        }
        if (status >= 300)
                max = ERROR_BODY_MAX;
        if (total > max - transfer->body.size) {
                transfer->too_large = true;
                return 0;
        }
        return text_append(&transfer->body, bytes, total) < 0 ? 0 : total;
}

static int take_url(struct kube_transfer *transfer, struct text *url)
{
        CURLcode code =
                url->failed ? CURLE_OUT_OF_MEMORY : curl_easy_setopt(transfer->easy, CURLOPT_URL, url->data);

        if (code == CURLE_OK && transfer->client->bounds_writes && !transfer->reads)
                transfer->url = text_take(url);
        return code == CURLE_OK && !url->failed ? 0 : -ENOMEM;
}

/*
 * tls-server-name: the certificate is checked against, and SNI says, the host of the URL; so the URL carries
 * that name, the connection goes to the real address, and the Host header names the real one.
 */
static int set_url(struct kube_transfer *transfer, const char *path,
                   const struct kube_credential *credential)
{
        _cleanup_free_ char *host = NULL, *port = NULL, *authority = NULL, *connect_to = NULL;
        CURLU *url = curl_url();
        int r = -EINVAL;

        if (url && curl_url_set(url, CURLUPART_URL, credential->server, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
            (authority = format_string("%s:%s", host, port)) &&
            (connect_to = format_string("%s:%s:%s", credential->tls_server_name, port, authority)) &&
            curl_url_set(url, CURLUPART_HOST, credential->tls_server_name, 0) == CURLUE_OK) {
                _cleanup_free_ char *base = NULL;

                transfer->connect_to = curl_slist_append(NULL, connect_to);
                r = append_header(&transfer->header, "Host", authority);
                if (r >= 0 && curl_url_get(url, CURLUPART_URL, &base, 0) == CURLUE_OK) {
                        _cleanup_text_ struct text full = TEXT_EMPTY;
                        size_t length = strlen(base);

                        text_append(&full, base,
                                    length > 0 && base[length - 1] == '/' ? length - 1 : length);
                        text_append_string(&full, path);
                        curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, transfer->connect_to);
                        r = take_url(transfer, &full);
                }
        }
        curl_url_cleanup(url);
        return r;
}

static int set_plain_url(struct kube_transfer *transfer, const char *path,
                         const struct kube_credential *credential)
{
        _cleanup_text_ struct text url = TEXT_EMPTY;
        size_t length = strlen(credential->server);

        while (length > 0 && credential->server[length - 1] == '/')
                length--;
        text_append(&url, credential->server, length);
        if (text_append_string(&url, path) < 0)
                return -ENOMEM;
        return take_url(transfer, &url);
}

int transfer_bound(struct kube_transfer *transfer, uint64_t now)
{
        uint64_t over = transfer->client->writes_over;
        _cleanup_free_ char *url = NULL;

        if (!transfer->url || over <= now)
                return 0;
        url = format_string("%s%stimeout=%llums", transfer->url, strchr(transfer->url, '?') ? "&" : "?",
                            (unsigned long long)((over - now) / USEC_PER_MSEC));
        return url && curl_easy_setopt(transfer->easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

static bool is_loopback(const char *server)
{
        _cleanup_free_ char *host = NULL;
        CURLU *url = curl_url();

        if (url && curl_url_set(url, CURLUPART_URL, server, 0) == CURLUE_OK)
                curl_url_get(url, CURLUPART_HOST, &host, 0);
        curl_url_cleanup(url);
        return host && (strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
                        strcmp(host, "[::1]") == 0);
}

/* As other clients of a kubeconfig do: its proxy-url is used always, the environment's proxy never for this
 * machine itself. */
static int set_proxy(struct kube_transfer *transfer, const struct kube_credential *credential)
{
        CURLcode code = CURLE_OK;

        if (credential->proxy_url[0]) {
                code = curl_easy_setopt(transfer->easy, CURLOPT_PROXY, credential->proxy_url);
                if (code == CURLE_OK)
                        code = curl_easy_setopt(transfer->easy, CURLOPT_NOPROXY, "");
        } else if (is_loopback(credential->server)) {
                code = curl_easy_setopt(transfer->easy, CURLOPT_PROXY, "");
        }
        return code == CURLE_OK ? 0 : -ENOMEM;
}

static int set_body(struct kube_transfer *transfer, const struct kube_request *request)
{
        int r;

        if (!request->body)
                return 0;
        curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
        if (curl_easy_setopt(transfer->easy, CURLOPT_COPYPOSTFIELDS, request->body) != CURLE_OK)
                return -ENOMEM;
        r = append_header(&transfer->header, "Content-Type",
                          request->content_type ? request->content_type : "application/json");
        return r < 0 ? r : append_header(&transfer->header, "Expect", NULL);
}

/* The path of the request, with dryRun if the client only tries. */
static char *whole_path(const struct kube_transfer *transfer, const struct kube_request *request)
{
        if (!transfer->client->dry_run || strcmp(request->method, "GET") == 0)
                return strdup(request->path);
        return format_string("%s%sdryRun=All", request->path, strchr(request->path, '?') ? "&" : "?");
}

int transfer_set_request(struct kube_transfer *transfer, const struct kube_request *request,
                         const struct kube_credential *credential)
{
        _cleanup_free_ char *path = whole_path(transfer, request);
        CURL *easy = transfer->easy;
        int r;

        if (!path)
                return -ENOMEM;
        kube_path_resource(request->path, transfer->resource, sizeof(transfer->resource));
        r = credential->tls_server_name[0] ? set_url(transfer, path, credential)
                                           : set_plain_url(transfer, path, credential);
        if (r >= 0)
                r = set_proxy(transfer, credential);
        if (r >= 0)
                r = append_header(&transfer->header, "Accept",
                                  request->accept ? request->accept : "application/json");
        if (r >= 0)
                r = add_headers_of(transfer, credential);
        if (r >= 0)
                r = set_body(transfer, request);
        if (r < 0)
                return r;
        if (curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) != CURLE_OK)
                return -ENOMEM;
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->header);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
        curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error_text);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
        if (request->timeout_usec > 0)
                curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                                 (long)(request->timeout_usec / USEC_PER_MSEC) + 1);
        return 0;
}

/* ---- the end */

static enum kube_failure failure_of(CURLcode code, const struct kube_transfer *transfer)
{
        curl_off_t prepared = 0;

        if (transfer->stopped_by_owner)
                return KUBE_FAILURE_CANCELLED;
        if (transfer->too_large)
                return KUBE_FAILURE_PROTOCOL;
        switch (code) {
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT:
        case CURLE_PROXY:
                return KUBE_FAILURE_CONNECT;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_ENGINE_NOTFOUND:
        case CURLE_SSL_ENGINE_SETFAILED:
                return KUBE_FAILURE_TLS;
        case CURLE_OPERATION_TIMEDOUT:
                /* 0 until there is a connection, TLS included, and the request could go. */
                curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &prepared);
                return prepared == 0 ? KUBE_FAILURE_CONNECT : KUBE_FAILURE_TIMEOUT;
        case CURLE_GOT_NOTHING:
        case CURLE_PARTIAL_FILE:
        case CURLE_RECV_ERROR:
        case CURLE_SEND_ERROR:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
                return KUBE_FAILURE_INTERRUPTED;
        default:
                return KUBE_FAILURE_PROTOCOL;
        }
}

static void count_end(struct kube_transfer *transfer, const struct kube_response *response, CURLcode code)
{
        size_t class = COUNT_FAILED;

        if ((code == CURLE_OK || transfer->stopped_by_owner) && response->http_status >= 200 &&
            response->http_status < 600)
                class = (size_t)(response->http_status / 100 - 2);
        transfer->client->count[class]++;
}

static int retry_after_sec(struct kube_transfer *transfer)
{
        curl_off_t seconds = 0;

        curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
        return seconds <= 0 ? -1 : (int)(seconds < KUBE_RETRY_AFTER_MAX ? seconds : KUBE_RETRY_AFTER_MAX);
}

/* OpenSSL's own words do not say what it was about. */
static const char *tls_prefix(CURLcode code)
{
        switch (code) {
        case CURLE_SSL_CERTPROBLEM:
                return "the client certificate cannot be used: ";
        case CURLE_SSL_CONNECT_ERROR: /* a server that ends, as well */
                return "no TLS connection; if that persists, our certificate may not be accepted: ";
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
                return "no TLS connection, the server's certificate or ours is not accepted: ";
        default:
                return "";
        }
}

/* What to do, by the code of OpenSSL's verification (X509_V_ERR_...). libcurl compares the name itself. */
static const char *tls_advice(const struct kube_transfer *transfer, CURLcode code)
{
        long verified = 0;

        if (code != CURLE_PEER_FAILED_VERIFICATION ||
            curl_easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &verified) != CURLE_OK)
                return "";
        switch (verified) {
        case 0:
        case 1:  /* as libcurl begins with */
        case 62: /* HOSTNAME_MISMATCH */
        case 64: /* IP_ADDRESS_MISMATCH */
                return "; the certificate is for other names: correct `server` in the kubeconfig, or name one of them "
                       "with `tls-server-name`";
        case 9:  /* CERT_NOT_YET_VALID */
        case 10: /* CERT_HAS_EXPIRED */
                return "; renew the server's certificate, or correct this machine's clock";
        case 18: /* DEPTH_ZERO_SELF_SIGNED_CERT */
        case 19: /* SELF_SIGNED_CERT_IN_CHAIN */
        case 20: /* UNABLE_TO_GET_ISSUER_CERT_LOCALLY */
        case 21: /* UNABLE_TO_VERIFY_LEAF_SIGNATURE */
                return "; `certificate-authority` (in a pod, ca.crt of the service account) did not sign it: get the "
                       "cluster's present one, or find out who answers at this address";
        default:
                return "";
        }
}

/* "Unauthorized" helps only a reader who knows who was refused where, and which file says who that is. */
static void add_identity(const struct kube_credential *credential, struct kube_error *error)
{
        char *message;

        if ((error->http_status != 401 && error->http_status != 403) || !error->message)
                return;
        message = format_string("%s (%s, as %s)", error->message, credential->server,
                                credential->identity[0] ? credential->identity : "nobody");
        if (!message)
                return;
        free(error->message);
        error->message = message;
}

static void describe_error(struct kube_transfer *transfer, CURLcode code, struct kube_response *response)
{
        /* A refusal stays one when its explanation is cut off or too long. */
        if (code != CURLE_OK && response->http_status < 400) {
                const char *why = transfer->error_text[0] ? transfer->error_text : curl_easy_strerror(code);

                kube_error_set(&response->error, failure_of(code, transfer), "%s: %s%s%s",
                               transfer->client->credential.server ? transfer->client->credential.server
                                                                   : "",
                               tls_prefix(code), transfer->too_large ? "the answer is too large" : why,
                               tls_advice(transfer, code));
                return;
        }
        if (response->http_status >= 300) {
                response->error.retry_after_sec = retry_after_sec(transfer);
                response->error.of_read = transfer->reads;
                kube_error_from_status(&response->error, response->http_status,
                                       transfer->body.data ? transfer->body.data : "", transfer->body.size);
                add_identity(&transfer->client->credential, &response->error);
                if (response->error.retry_after_sec > 0) {
                        transfer->client->wishes++;
                        /* The API server passes an aggregated server's answer on as it is: nothing tells whose it was. */
                        if (transfer->resource[0])
                                response->error.resource = strdup(transfer->resource);
                }
        }
}

static void tell_exchange(const struct kube_transfer *transfer, const struct kube_response *response)
{
        const struct kube_client *client = transfer->client;
        struct kube_exchange exchange = {
                .method = transfer->method,
                .path = transfer->path,
                .body = transfer->sent.data,
                .body_size = transfer->sent.size,
                .confidential = transfer->confidential,
                .response = response,
        };

        if (client->on_exchange && transfer->method)
                client->on_exchange(&exchange, client->on_exchange_userdata);
}

void transfer_finish_held(struct kube_transfer *transfer, uint64_t until)
{
        struct kube_response response = {
                .error = KUBE_ERROR_NONE, .body = "", .credential_serial = transfer->credential_serial};
        bool of_all = throttle_until(&transfer->client->throttles, "") >= until;
        const char *resource = of_all ? "" : transfer->resource;
        uint64_t now = clock_boottime_usec();

        if (transfer->cancelled)
                return;
        /* No number in it: the text goes into conditions, which would change with each attempt. */
        kube_error_set(&response.error, KUBE_FAILURE_HELD,
                       "%s: the API server asks us to wait%s%s (Retry-After)",
                       transfer->client->credential.server ? transfer->client->credential.server : "",
                       resource[0] ? " for " : "", resource + (resource[0] == '/'));
        response.error.retry_after_sec =
                (int)(until > now ? (until - now + USEC_PER_SEC - 1) / USEC_PER_SEC : 1);
        transfer->on_done(transfer, &response, transfer->userdata);
        kube_error_done(&response.error);
}

void transfer_finish(struct kube_transfer *transfer, CURLcode code)
{
        struct kube_response response = {
                .error = KUBE_ERROR_NONE,
                .credential_serial = transfer->credential_serial,
                .repeated = transfer->sent_count > 1,
                .server_seconds = transfer->server_seconds,
        };
        long status = 0;

        if (transfer->cancelled)
                return;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        response.http_status = (int)status;
        describe_error(transfer, code, &response);
        response.body = transfer->body.data ? transfer->body.data : "";
        response.body_size = transfer->body.size;
        count_end(transfer, &response, code);
        transfer->overloaded = code != CURLE_OK || status == 429;
        tell_exchange(transfer, &response);
        transfer->on_done(transfer, &response, transfer->userdata);
        kube_error_done(&response.error);
}
