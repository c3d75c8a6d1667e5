/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/answer/show.h"

#include <stdint.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "ctl/answer/query.h"
#include "ctl/output/output.h"

int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata)
{
        static const char *const none[] = {NULL};
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;
        int r = ctl_query_about(runtime_directory, command, (char **)(uintptr_t)(argument ? argument : none),
                                &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        if (form == FORM_JSON)
                (void)ctl_print_json(answer);
        else if (form == FORM_YAML)
                ctl_print_yaml(answer);
        else
                print(answer, userdata);
        cJSON_Delete(answer);
        return EXIT_CODE_OK;
}
