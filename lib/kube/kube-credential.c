/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube-credential.h"

#include <errno.h>
#include <string.h>

static int set_tls(CURL *easy, const struct kube_credential *credential)
{
        struct curl_blob authority = {credential->certificate_authority,
                                      strlen(credential->certificate_authority), CURL_BLOB_COPY};
        struct curl_blob certificate = {credential->client_certificate,
                                        strlen(credential->client_certificate), CURL_BLOB_COPY};
        struct curl_blob key = {credential->client_key, strlen(credential->client_key), CURL_BLOB_COPY};

        if (credential->insecure) {
                curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        if (authority.len > 0) {
                /* This authority and no other: libcurl's built-in folder of public ones would stay. */
                curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
                if (curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &authority) != CURLE_OK)
                        return -ENOMEM;
        }
        if (certificate.len > 0 && curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate) != CURLE_OK)
                return -ENOMEM;
        if (key.len > 0 && curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key) != CURLE_OK)
                return -ENOMEM;
        return 0;
}

static int set_authentication(CURL *easy, const struct kube_credential *credential)
{
        CURLcode code = CURLE_OK;

        if (credential->token[0]) {
                curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
                code = curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, credential->token);
        } else if (credential->username[0]) {
                curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
                code = curl_easy_setopt(easy, CURLOPT_USERNAME, credential->username);
                if (code == CURLE_OK)
                        code = curl_easy_setopt(easy, CURLOPT_PASSWORD, credential->password);
        }
        return code == CURLE_OK ? 0 : -ENOMEM;
}

int kube_credential_use(CURL *easy, const struct kube_credential *credential)
{
        int r = set_tls(easy, credential);

        return r < 0 ? r : set_authentication(easy, credential);
}
