/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

int error_set(struct error *error, int status, const char *format, ...)
{
        va_list arguments;

        assert(status <= 0); /* 0: the text reports no failure */
        if (!error || error->status < 0)
                return status;
        va_start(arguments, format);
        if (vasprintf(&error->message, format, arguments) < 0)
                error->message = NULL;
        va_end(arguments);
        error->status = status;
        return status;
}

int error_prefix(struct error *error, const char *format, ...)
{
        _cleanup_free_ char *prefix = NULL;
        va_list arguments;
        char *message;

        if (!error || error->status == 0)
                return 0;
        va_start(arguments, format);
        if (vasprintf(&prefix, format, arguments) < 0)
                prefix = NULL;
        va_end(arguments);
        message = prefix ? format_string("%s: %s", prefix, error_message(error)) : NULL;
        if (message) {
                free(error->message);
                error->message = message;
        }
        return error->status;
}

const char *error_message(const struct error *error)
{
        return error->message ? error->message : strerror(-error->status);
}

void error_done(struct error *error)
{
        free(error->message);
        *error = ERROR_NONE;
}
