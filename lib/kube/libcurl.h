/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libcurl is not linked. A process loads it when it is to make a request: with the thirty libraries that it
 * brings, OpenSSL among them, it costs each process five milliseconds and more than a megabyte, and a worker
 * whose handlers' answers write nothing never needs it. Included instead of <curl/curl.h>, its functions are
 * called by their names.
 */
#include <curl/curl.h>

/* Must be called before any other of libcurl's functions. -ELIBACC, with the reason in *ret_reason (static):
 * it cannot be had; -EMFILE, -ENFILE, -ENOMEM: not now. */
int libcurl_load(const char **ret_reason);
/* Called at the end of the process. */
void libcurl_unload(void);

#define LIBCURL_FUNCTIONS(F)                                                                                \
        F(curl_easy_cleanup)                                                                                \
        F(curl_easy_getinfo)                                                                                \
        F(curl_easy_init)                                                                                   \
        F(curl_easy_perform)                                                                                \
        F(curl_easy_setopt)                                                                                 \
        F(curl_easy_strerror)                                                                               \
        F(curl_global_cleanup)                                                                              \
        F(curl_global_init)                                                                                 \
        F(curl_multi_add_handle)                                                                            \
        F(curl_multi_assign)                                                                                \
        F(curl_multi_cleanup)                                                                               \
        F(curl_multi_info_read)                                                                             \
        F(curl_multi_init)                                                                                  \
        F(curl_multi_remove_handle)                                                                         \
        F(curl_multi_setopt)                                                                                \
        F(curl_multi_socket_action)                                                                         \
        F(curl_slist_append)                                                                                \
        F(curl_slist_free_all)                                                                              \
        F(curl_url)                                                                                         \
        F(curl_url_cleanup)                                                                                 \
        F(curl_url_get)                                                                                     \
        F(curl_url_set)

#define LIBCURL_MEMBER(name) typeof(name) *call_##name;

extern struct libcurl {
        LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
} libcurl;

/* The functions without `...`. Those with `...` are in libcurl.c: libcurl has macros for them, which check
 * the types of what is passed. */
#define curl_easy_cleanup        libcurl.call_curl_easy_cleanup
#define curl_easy_init           libcurl.call_curl_easy_init
#define curl_easy_perform        libcurl.call_curl_easy_perform
#define curl_easy_strerror       libcurl.call_curl_easy_strerror
#define curl_global_cleanup      libcurl.call_curl_global_cleanup
#define curl_global_init         libcurl.call_curl_global_init
#define curl_multi_add_handle    libcurl.call_curl_multi_add_handle
#define curl_multi_assign        libcurl.call_curl_multi_assign
#define curl_multi_cleanup       libcurl.call_curl_multi_cleanup
#define curl_multi_info_read     libcurl.call_curl_multi_info_read
#define curl_multi_init          libcurl.call_curl_multi_init
#define curl_multi_remove_handle libcurl.call_curl_multi_remove_handle
#define curl_multi_socket_action libcurl.call_curl_multi_socket_action
#define curl_slist_append        libcurl.call_curl_slist_append
#define curl_slist_free_all      libcurl.call_curl_slist_free_all
#define curl_url                 libcurl.call_curl_url
#define curl_url_cleanup         libcurl.call_curl_url_cleanup
#define curl_url_get             libcurl.call_curl_url_get
#define curl_url_set             libcurl.call_curl_url_set
