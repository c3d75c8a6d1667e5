/* SPDX-License-Identifier: Apache-2.0 */
/* See libcurl.h. A function here that has the name of one of libcurl's is hidden from libcurl itself. */
#include "kube/libcurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

#define FILE_NAME "libcurl.so.4"

#define PLACE(name) {#name, offsetof(struct libcurl, call_##name)},

static const struct {
        const char *name;
        size_t offset;
} place[] = {LIBCURL_FUNCTIONS(PLACE)};

struct libcurl libcurl;
static bool loaded;

static int find_functions(void *handle)
{
        for (size_t i = 0; i < ELEMENTS(place); i++) {
                void *function = dlsym(handle, place[i].name);

                if (!function)
                        return -ELIBACC;
                memcpy((char *)&libcurl + place[i].offset, &function, sizeof(function));
        }
        return 0;
}

/* The errno when descriptors or memory were short, which may pass, so that the next call tries again. The
 * dynamic linker names the error only at the end of its message. */
static int shortage(const char *words)
{
        static const int passing[] = {EMFILE, ENFILE, ENOMEM};
        size_t size = strlen(words);

        for (size_t i = 0; i < ELEMENTS(passing); i++) {
                const char *end = strerror(passing[i]);

                if (size >= strlen(end) && strcmp(words + size - strlen(end), end) == 0)
                        return -passing[i];
        }
        return -ELIBACC;
}

/* Never unloaded: its own threads may be running. */
int libcurl_load(const char **ret_reason)
{
        void *handle;

        if (loaded)
                return 0;
        handle = dlopen(FILE_NAME, RTLD_LAZY | RTLD_LOCAL);
        if (!handle || find_functions(handle) < 0) {
                *ret_reason = dlerror();
                return *ret_reason ? shortage(*ret_reason) : -ENOMEM;
        }
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                *ret_reason = FILE_NAME " cannot be initialised";
                return -ELIBACC;
        }
        loaded = true;
        return 0;
}

void libcurl_unload(void)
{
        if (loaded)
                curl_global_cleanup();
        loaded = false;
}

/* ---- those with `...` */

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
        va_list arguments;
        CURLcode code;

        va_start(arguments, option);
        if (option < CURLOPTTYPE_OBJECTPOINT)
                code = libcurl.call_curl_easy_setopt(easy, option, va_arg(arguments, long));
        else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
                code = libcurl.call_curl_easy_setopt(easy, option, va_arg(arguments, curl_off_t));
        else
                code = libcurl.call_curl_easy_setopt(easy, option, va_arg(arguments, void *));
        va_end(arguments);
        return code;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
        va_list arguments;
        CURLMcode code;

        va_start(arguments, option);
        if ((int)option < CURLOPTTYPE_OBJECTPOINT)
                code = libcurl.call_curl_multi_setopt(multi, option, va_arg(arguments, long));
        else
                code = libcurl.call_curl_multi_setopt(multi, option, va_arg(arguments, void *));
        va_end(arguments);
        return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
        va_list arguments;
        CURLcode code;

        va_start(arguments, info);
        code = libcurl.call_curl_easy_getinfo(easy, info, va_arg(arguments, void *));
        va_end(arguments);
        return code;
}
