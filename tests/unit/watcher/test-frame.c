/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of bytes, wherever the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "watcher/stream/frame.h"

#define LINE_MAX 12

struct lines {
        char text[256];
        int answer;
};

/* Each line as it came and a '|'; a line that was too long is a '#'. */
static int on_line(const char *line, size_t size, void *userdata)
{
        struct lines *lines = userdata;

        strncat(lines->text, line ? line : "#", line ? size : 1);
        strncat(lines->text, "|", 2);
        return lines->answer;
}

static void feed(struct frame *frame, const char *bytes, size_t size, struct lines *lines)
{
        /* A copy of exact size: a byte too many is seen by the sanitizer. */
        char *copy = malloc(size ? size : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        assert_int_equal(frame_feed(frame, LINE_MAX, copy, size, on_line, lines), 0);
        free(copy);
}

static void test_every_split(void **state _unused_)
{
        static const char bytes[] =
                "one\n\nt\xc3\xa4\xe2\x82\xac\n0123456789012345678901\nafter\ntwelve bytes\nrest";
        size_t size = sizeof(bytes) - 1;

        for (size_t first = 0; first <= size; first++)
                for (size_t second = first; second <= size; second++) {
                        struct frame frame = {0};
                        struct lines lines = {0};

                        feed(&frame, bytes, first, &lines);
                        feed(&frame, bytes + first, second - first, &lines);
                        feed(&frame, bytes + second, size - second, &lines);
                        assert_string_equal(lines.text, "one||t\xc3\xa4\xe2\x82\xac|#|after|twelve bytes|");
                        frame_done(&frame);
                }
}

static void test_byte_by_byte(void **state _unused_)
{
        static const char bytes[] = "a\nbb\n0123456789abcdef\n\nc\n";
        struct frame frame = {0};
        struct lines lines = {0};

        for (size_t i = 0; i < sizeof(bytes) - 1; i++)
                feed(&frame, bytes + i, 1, &lines);
        assert_string_equal(lines.text, "a|bb|#||c|");
        frame_done(&frame);
}

static void test_a_fragment_is_dropped_with_its_stream(void **state _unused_)
{
        struct frame frame = {0};
        struct lines lines = {0};

        feed(&frame, "one\nhalf", 8, &lines);
        frame_reset(&frame);
        feed(&frame, "two\n", 4, &lines);
        feed(&frame, "0123456789012345", 16, &lines);
        frame_reset(&frame);
        feed(&frame, "three\n", 6, &lines);
        assert_string_equal(lines.text, "one|two|three|");
        frame_done(&frame);
}

static void test_a_giant_takes_no_memory(void **state _unused_)
{
        char piece[4096];
        struct frame frame = {0};
        struct lines lines = {0};

        memset(piece, 'x', sizeof(piece));
        for (int i = 0; i < 100; i++) {
                feed(&frame, piece, sizeof(piece), &lines);
                assert_true(frame.buffer.allocated <= LINE_MAX + 1 + sizeof(piece));
        }
        feed(&frame, "\nb\n", 3, &lines);
        assert_string_equal(lines.text, "#|b|");
        frame_done(&frame);
}

static void test_ends_with_the_callers_error(void **state _unused_)
{
        struct frame frame = {0};
        struct lines lines = {.answer = -ECANCELED};

        assert_int_equal(frame_feed(&frame, LINE_MAX, "a\nb\n", 4, on_line, &lines), -ECANCELED);
        assert_string_equal(lines.text, "a|");
        frame_done(&frame);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_split),
                cmocka_unit_test(test_byte_by_byte),
                cmocka_unit_test(test_a_fragment_is_dropped_with_its_stream),
                cmocka_unit_test(test_a_giant_takes_no_memory),
                cmocka_unit_test(test_ends_with_the_callers_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
