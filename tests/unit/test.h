/*
 * test.h - the words that tests are written in, over cmocka.
 *
 * A test is TEST(name) { ... } at the start of a line; the list of a file's tests is made from
 * those lines by the Makefile.  Each file becomes a program of its own.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>
#include <time.h>
#endif

#include <cmocka.h>
#undef fail /* ours is in base/error.h */

#include "base/base.h"
#include "base/error.h"

/* Ends the test with a message. */
#define CHECK_STOP(...)                                                                        \
    do {                                                                                       \
        print_error(__VA_ARGS__);                                                              \
        print_error("\n");                                                                     \
        _fail(__FILE__, __LINE__);                                                             \
    } while (0)

#define TEST(name) static void name(void **test_state __attribute__((unused)))

/*
 * The program's exit status, under ASan its end.  gRPC's own threads may have something in hand
 * still, such as a handshake with a server that has gone, which looks lost to LeakSanitizer at
 * times, above all while the process ends: so what is lost is looked for before that, until
 * nothing is or for two seconds, and not again.
 */
static inline int test_end(int failed)
{
#ifdef __SANITIZE_ADDRESS__
    for (int i = 0; i < 10; i++) {
        if (!__lsan_do_recoverable_leak_check()) {
            fflush(NULL);
            _Exit(failed > 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
#endif
    return failed;
}

#define CHECK(condition) assert_true(condition)
#define CHECK_INT(actual, expected) assert_int_equal((actual), (expected))
#define CHECK_TEXT(actual, expected) assert_string_equal((actual), (expected))

/* A call that must succeed / fail with `code`; prints the error's text otherwise. */
#define CHECK_OK(call, err)                                                                    \
    do {                                                                                       \
        if (!(call))                                                                           \
            CHECK_STOP("%s: %s: %s", #call, error_code_name((err)->code), (err)->text);        \
    } while (0)
#define CHECK_FAILS(call, err, expected)                                                       \
    do {                                                                                       \
        if (call)                                                                              \
            CHECK_STOP("%s: did not fail", #call);                                             \
        if ((err)->code != (expected))                                                         \
            CHECK_STOP("%s: %s (%s) in place of %s", #call, error_code_name((err)->code),      \
                       (err)->text, error_code_name(expected));                                \
    } while (0)
