/* Makes io_uring calls in every way a program can, and prints what each gave.
 *
 * calls WAY...: inline | libc | masked | thread | fork | vfork | spawn | spawn-clean | execl |
 * execle-clean | execvp | system | popen | sigsys | own-filter | errno
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static char *self;

/* io_uring_enter on no descriptor at all. */
static long inline_call(void)
{
	long ret;
	register long r10 asm("r10") = 0, r8 asm("r8") = 0, r9 asm("r9") = 0;
	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(426L), "D"(-1L), "S"(0L), "d"(0L), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return ret;
}

static long libc_call(void)
{
	errno = 0;
	long ret = syscall(426, -1, 0, 0, 0, 0, 0);
	return ret == -1 ? -errno : ret;
}

static void say(const char *way, long ret)
{
	printf("%s %ld\n", way, ret);
	fflush(stdout);
}

static void await(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		printf("child failed\n");
		exit(1);
	}
}

static void *in_thread(void *unused)
{
	say("thread", inline_call());
	return unused;
}

static volatile int got;

static void on_signal(int number)
{
	got = number;
}

static void sigsys(void)
{
	struct sigaction action = { .sa_handler = on_signal }, found;
	sigaction(SIGSYS, &action, NULL);
	sigaction(SIGSYS, NULL, &found);
	kill(getpid(), SIGSYS);
	printf("handler %d kept %d\n", got, found.sa_handler == on_signal);
	say("after", inline_call());
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	uc->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_getpriority && number == SIGSYS &&
					 sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2) ? 42 : 1;
}

/* The program emulates a call of its own with a filter and a handler. */
static void own_filter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGSYS, &action, NULL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	printf("emulated %ld\n", syscall(SYS_getpriority, 0, 0));
	say("after", inline_call());
	signal(SIGSYS, SIG_DFL);
	pid_t pid = fork();
	if (pid == 0) {
		syscall(SYS_getpriority, 0, 0);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("killed by %d\n", WTERMSIG(status));
}

static void run(const char *way)
{
	char *clean[] = { NULL }, *child[] = { self, "inline", NULL }, command[4096];
	extern char **environ;
	pid_t pid;

	if (!strcmp(way, "inline")) {
		say(way, inline_call());
	} else if (!strcmp(way, "libc")) {
		say(way, libc_call());
	} else if (!strcmp(way, "errno")) {
		errno = 77;
		inline_call();
		printf("errno %d\n", errno);
	} else if (!strcmp(way, "masked")) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		say(way, inline_call());
		sigemptyset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
	} else if (!strcmp(way, "thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, in_thread, NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(way, "sigsys")) {
		sigsys();
	} else if (!strcmp(way, "own-filter")) {
		own_filter();
	} else if (!strcmp(way, "fork")) {
		pid = fork();
		if (pid == 0) {
			say(way, inline_call());
			_exit(0);
		}
		await(pid);
	} else if (!strcmp(way, "vfork")) {
		pid = vfork();
		if (pid == 0) {
			execve(self, child, clean);
			_exit(9);
		}
		await(pid);
	} else if (!strcmp(way, "spawn")) {
		posix_spawn(&pid, self, NULL, NULL, child, environ);
		await(pid);
	} else if (!strcmp(way, "spawn-clean")) {
		posix_spawnp(&pid, self, NULL, NULL, child, clean);
		await(pid);
	} else if (!strcmp(way, "execl") || !strcmp(way, "execle-clean") || !strcmp(way, "execvp")) {
		pid = fork();
		if (pid == 0) {
			if (way[5] == 'e')
				execle(self, self, "inline", "libc", "inline", "libc", "inline",
				       "libc", NULL, clean);
			else if (way[4] == 'v')
				execvp(self, child);
			else
				execl(self, self, "inline", NULL);
			_exit(9);
		}
		await(pid);
	} else if (!strcmp(way, "system")) {
		snprintf(command, sizeof(command), "'%s' inline", self);
		if (system(command) != 0)
			exit(1);
	} else if (!strcmp(way, "popen")) {
		snprintf(command, sizeof(command), "'%s' inline", self);
		FILE *pipe = popen(command, "r");
		char line[100];
		while (pipe && fgets(line, sizeof(line), pipe))
			fputs(line, stdout);
		pclose(pipe);
	} else {
		fprintf(stderr, "no such way: %s\n", way);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	self = argv[0];
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	return 0;
}
