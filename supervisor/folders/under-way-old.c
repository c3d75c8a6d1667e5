/* SPDX-License-Identifier: Apache-2.0 */
/* The file `under-way` as it was in the runtime directory up to the ledger's schema 5: read once, by the
 * first start of a newer release. */
#include "supervisor/folders/under-way-old.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "controller/run/last-life.h"
#include "supervisor/supervisor.h"

#define OLD_VERSION UINT32_C(0x77617901)

struct old_record {
        uint32_t busy;
        uint64_t fingerprint;
        char watch[64], key[320], uid[68];
};

struct old_file {
        uint32_t version, count;
        sd_id128_t boot;
        struct old_record record[];
};

static size_t old_size(size_t count)
{
        return sizeof(struct old_file) + count * sizeof(struct old_record);
}

static bool is_text(const char *text, size_t size)
{
        return text[0] != '\0' && strnlen(text, size) < size;
}

static bool is_noted(const struct old_record *record)
{
        return record->busy == 1 && is_text(record->watch, sizeof(record->watch)) &&
               is_text(record->key, sizeof(record->key)) && is_text(record->uid, sizeof(record->uid));
}

/* NULL: there is none, or none that says anything. */
static struct old_file *read_old(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ struct old_file *file = NULL;
        sd_id128_t boot;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size < old_size(0) ||
            (size_t)st.st_size > old_size(WORKERS_MAX * RUNS_AT_ONCE) || sd_id128_get_boot(&boot) < 0)
                return NULL;
        file = malloc((size_t)st.st_size);
        if (!file || pread(fd, file, (size_t)st.st_size, 0) != st.st_size)
                return NULL;
        if (file->version != OLD_VERSION || (size_t)st.st_size != old_size(file->count) ||
            !sd_id128_equal(file->boot, boot))
                return NULL;
        return TAKE_PTR(file);
}

int under_way_judge_old(struct supervisor *supervisor)
{
        _cleanup_free_ struct old_file *file = NULL;
        _cleanup_free_ char *path = NULL;
        size_t noted = 0;
        int r = 0;

        if (asprintf(&path, "%s/under-way", supervisor->options->runtime_directory) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        file = read_old(path);
        if (!file)
                return 0;
        for (size_t i = 0; i < file->count; i++)
                noted += is_noted(&file->record[i]);
        for (size_t i = 0; i < file->count && r >= 0; i++) {
                const struct old_record *record = &file->record[i];

                if (is_noted(record))
                        r = last_life_judge(&supervisor->controller,
                                            &(struct noted_run){record->watch, record->key, record->uid,
                                                                record->fingerprint, false},
                                            true, noted == 1);
        }
        if (r >= 0)
                r = ledger_commit(supervisor->controller.ledger);
        if (r >= 0 && unlink(path) < 0)
                r = -errno;
        return r;
}
