/* A static program: exits 5; with an argument and -DCALLS it makes io_uring calls first. */
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argv;
#ifdef CALLS
	char params[120] = { 0 };
	if (argc > 1) {
		printf("setup %ld\n", syscall(425, 1, params));
		printf("enter %ld\n", syscall(426, -1, 0, 0, 0, 0, 0));
	}
#else
	(void)argc;
#endif
	signal(SIGSYS, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	printf("done\n");
	return 5;
}
