/* prompt.c - reading with the terminal's echo off. */

#include "cli/prompt.h"

#include <termios.h>
#include <unistd.h>

size_t prompt_read(const char *label, char *value, size_t size_max)
{
    struct termios shown, hidden;
    size_t size;
    if (isatty(0) && tcgetattr(0, &shown) == 0) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        fprintf(stderr, "%s: ", label);
        tcsetattr(0, TCSAFLUSH, &hidden);
        size = fgets(value, (int)size_max + 2, stdin) ? strlen(value) : 0;
        tcsetattr(0, TCSAFLUSH, &shown);
        fputc('\n', stderr);
    } else {
        size = fread(value, 1, size_max + 1, stdin);
    }
    if (size && value[size - 1] == '\n')
        size--;
    value[size] = '\0';
    return size;
}
