/*
 * fuzz_websocket.c - what a client says over the live stream.  Of each four bytes of input the
 * first two say how the next frame looks (kind, end, mask, and how its length is written, also
 * wrongly), the third how many bytes of the input it has, at most 255; the fourth is thrown in
 * as it is where its lowest bit is set.
 */

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/yard.h"

/* The frame's head: RFC 6455, 5.2. */
static void add_head(struct str *out, uint8_t first, uint8_t how, size_t size)
{
    static const uint8_t opcodes[] = {1, 1, 1, 1, 2, 8, 9, 10};
    uint8_t opcode = first & 8 ? first & 15 : opcodes[first & 7];
    bool masked = (how & 7) != 0;
    str_add_char(out, (char)((first & 0xf0) == 0xf0 ? first : 0x80 | opcode));
    if ((how & 0x30) == 0x10)
        size += how >> 6; /* not what follows */
    if ((how & 0x08) || size > 125) {
        str_add_char(out, (char)(masked << 7 | 126));
        str_add_char(out, (char)(size >> 8));
        str_add_char(out, (char)size);
    } else {
        str_add_char(out, (char)((size_t)masked << 7 | size));
    }
    for (int i = 0; masked && i < 4; i++)
        str_add_char(out, 0); /* a mask that leaves the bytes as they are */
}

static const char ping[] = "\x89\x87\x01\x01\x01\x01uid!doe";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[1 << 20];
    struct str out = {0};
    for (size_t at = 0; at + 4 <= size;) {
        size_t count = data[at + 2] < size - at - 4 ? data[at + 2] : size - at - 4;
        add_head(&out, data[at], data[at + 1], count);
        if (data[at + 3] & 1)
            str_add_char(&out, (char)data[at + 3]);
        str_add_bytes(&out, data + at + 4, count);
        at += 4 + count;
    }
    str_add(&out, ping); /* whose answer is the end, where the stream is still whole */
    size_t got =
        yard_talk(yard_handshake(), out.data, out.size, "the end", 8, answer, sizeof(answer));
    FUZZ_CHECK(got > 12 && !strncmp(answer, "HTTP/1.1 101", 12));
    str_release(&out);
    return 0;
}
