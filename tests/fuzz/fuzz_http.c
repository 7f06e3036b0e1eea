/*
 * fuzz_http.c - connections of the HTTP port: whatever comes, the answer is one, and no fault
 * of the server's own.
 */

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/yard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[1 << 20];
    size_t got = yard_talk(NULL, data, size, NULL, 10, answer, sizeof(answer));
    FUZZ_CHECK(got == 0 || !strncmp(answer, "HTTP/1.", 7));
    /* 501 and 505 are of libmicrohttpd, for what it does not speak; 503 says to come again. */
    FUZZ_CHECK(got < 12 || answer[9] != '5' || !strncmp(answer + 9, "501", 3) ||
               !strncmp(answer + 9, "505", 3) || !strncmp(answer + 9, "503", 3));
    return 0;
}
