/* filter.c - a seccomp filter, as a list of system calls that are refused. */

#include "scheduler/shim/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#define FILTER_CALLS_MAX 0x40000000 /* above are those of x32 */
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#define FILTER_CALLS_MAX 0x40000000
#endif

#ifdef FILTER_ARCH

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define REFUSE(code) (SECCOMP_RET_ERRNO | ((code)&SECCOMP_RET_DATA))
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))

static const struct refused {
    int call;
    int code;
} refused[] = {
    /* Namespaces and mounts, where a user becomes root of something. */
    {SYS_unshare, EPERM},
    {SYS_setns, EPERM},
    {SYS_clone3, ENOSYS}, /* its flags are out of sight; the C library then calls clone */
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_open_tree, EPERM},
    {SYS_move_mount, EPERM},
    {SYS_fsopen, EPERM},
    {SYS_fsconfig, EPERM},
    {SYS_fsmount, EPERM},
    {SYS_fspick, EPERM},
    {SYS_mount_setattr, EPERM},
    {SYS_open_by_handle_at, EPERM},
    /* The kernel itself. */
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_kexec_load, EPERM},
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    {SYS_keyctl, EPERM},
    {SYS_syslog, EPERM},
    /* The machine. */
    {SYS_reboot, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_acct, EPERM},
    {SYS_quotactl, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
};

bool filter_enter(void)
{
    static const struct sock_filter begin[] = {
        FIELD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, REFUSE(EPERM)),
        FIELD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FILTER_CALLS_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, REFUSE(EPERM)),
    };
    static const struct sock_filter end[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        FIELD(args[0]), /* the lower half: both machines store it first */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, REFUSE(EPERM)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter program[COUNT(begin) + 2 * COUNT(refused) + COUNT(end)];
    unsigned short size = 0;
    for (size_t i = 0; i < COUNT(begin); i++)
        program[size++] = begin[i];
    for (size_t i = 0; i < COUNT(refused); i++) {
        program[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                       (unsigned)refused[i].call, 0, 1);
        program[size++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE((unsigned)refused[i].code));
    }
    for (size_t i = 0; i < COUNT(end); i++)
        program[size++] = end[i];
    struct sock_fprog filter = {size, program};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

#else

bool filter_enter(void)
{
    errno = ENOSYS;
    return false;
}

#endif
