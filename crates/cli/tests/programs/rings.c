/* What a program may do with a ring besides using it. Prints what it saw; the kernel's io_uring
 * and ours must give the same text.
 *
 * rings WAY
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct io_uring ring;

static void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

static void open_ring(void)
{
	int ret = io_uring_queue_init(8, &ring, 0);
	if (ret < 0) {
		printf("no ring: %s\n", strerror(-ret));
		exit(1);
	}
}

/* One NOP; its result, or the error of submitting. */
static int nop(struct io_uring *on, int flags)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe = io_uring_get_sqe(on);
	io_uring_prep_nop(sqe);
	sqe->flags = flags;
	int ret = io_uring_submit_and_wait(on, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(on, &cqe);
	if (ret < 0)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(on, cqe);
	return ret;
}

/* Leaves one completion in the ring. */
static void submit_nop(void)
{
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	io_uring_submit(&ring);
}

static void drain(void)
{
	struct io_uring_cqe *cqe;
	io_uring_wait_cqe(&ring, &cqe);
	io_uring_cqe_seen(&ring, cqe);
}

static int child(pid_t pid)
{
	int status = -1;
	waitpid(pid, &status, 0);
	return status;
}

static void forked(void)
{
	open_ring();
	say("before", nop(&ring, 0));
	pid_t pid = fork();
	if (pid == 0) {
		struct io_uring own;
		if (io_uring_queue_init(4, &own, 0) < 0)
			_exit(1);
		say("child's own", nop(&own, IOSQE_ASYNC));
		_exit(0);
	}
	say("child", child(pid));
	say("after", nop(&ring, IOSQE_ASYNC));
}

/* The child's use of the parent's ring is an error or works; the parent is unharmed. */
static void forked_use(void)
{
	open_ring();
	pid_t pid = fork();
	if (pid == 0) {
		int ret = syscall(426, ring.ring_fd, 0, 0, 0, 0, 0);
		_exit(ret == 0 || errno == EBADF || errno == EOPNOTSUPP || errno == EEXIST ? 0 : 1);
	}
	say("child", child(pid));
	say("after", nop(&ring, 0));
}

static void duplicates(void)
{
	open_ring();
	int copy = fcntl(ring.ring_fd, F_DUPFD_CLOEXEC, 0), low = dup2(ring.ring_fd, 200);
	say("copy", copy >= 0);
	say("cloexec", fcntl(copy, F_GETFD));
	say("low", low);
	say("close", close(ring.ring_fd));
	say("closed", nop(&ring, 0));
	ring.ring_fd = copy;
	ring.enter_ring_fd = copy;
	say("through the copy", nop(&ring, 0));
	say("again", nop(&ring, 0));
	say("close", close(copy));
	ring.ring_fd = ring.enter_ring_fd = low;
	say("through the low copy", nop(&ring, 0));
	say("close", close(low));
	say("closed", close(low));
}

static void readiness(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);
	open_ring();
	struct pollfd poller = { .fd = ring.ring_fd, .events = POLLIN };
	say("add", epoll_ctl(epoll, EPOLL_CTL_ADD, ring.ring_fd, &event));
	say("again", epoll_ctl(epoll, EPOLL_CTL_ADD, ring.ring_fd, &event) == -1 ? errno : 0);
	say("empty", epoll_wait(epoll, &event, 1, 0));
	say("empty poll", poll(&poller, 1, 0));
	submit_nop();
	say("full", epoll_wait(epoll, &event, 1, 1000));
	say("full poll", poll(&poller, 1, 1000));
	drain();
	say("drained", epoll_wait(epoll, &event, 1, 0));
	say("drained poll", poll(&poller, 1, 0));
	submit_nop();
	say("full", epoll_wait(epoll, &event, 1, 1000));
	say("delete", epoll_ctl(epoll, EPOLL_CTL_DEL, ring.ring_fd, NULL));
	say("deleted", epoll_wait(epoll, &event, 1, 0));
}

static void ranges(void)
{
	dup(0);
	dup(0);
	open_ring();
	say("below", close_range(3, ring.ring_fd - 1, 0));
	say("kept", nop(&ring, IOSQE_ASYNC));
	say("cloexec", close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	say("kept", nop(&ring, IOSQE_ASYNC));
	say("all", close_range(3, ~0U, 0));
	say("closed", nop(&ring, 0));
	open_ring();
	say("new", nop(&ring, IOSQE_ASYNC));
	closefrom(3);
	say("closed", nop(&ring, 0));
	open_ring();
	say("new", nop(&ring, IOSQE_ASYNC));
}

static void loop_close(void)
{
	open_ring();
	int max = sysconf(_SC_OPEN_MAX);
	for (int fd = 3; fd < max && fd < 100000; fd++)
		if (fd != ring.ring_fd)
			close(fd);
	say("kept", nop(&ring, IOSQE_ASYNC));
}

static void print_limit(const char *what)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	printf("%s %ld %d %ld\n", what, (long)limit.rlim_cur, getdtablesize(), sysconf(_SC_OPEN_MAX));
	fflush(stdout);
}

static void limits(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 500;
	setrlimit(RLIMIT_NOFILE, &limit);
	open_ring();
	print_limit("own");
	say("system", system("ulimit -Sn"));
	if (vfork() == 0) {
		execl("/bin/sh", "sh", "-c", "echo vfork; ulimit -Sn", NULL);
		_exit(1);
	}
	wait(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		print_limit("forked");
		execl("/bin/sh", "sh", "-c", "ulimit -Sn", NULL);
		_exit(1);
	}
	say("child", child(pid));
	limit.rlim_cur = 400;
	prlimit(0, RLIMIT_NOFILE, &limit, NULL);
	print_limit("lowered");
	say("system", system("ulimit -Sn"));
	say("ring", nop(&ring, IOSQE_ASYNC));
	execl("/no/such/program", "x", NULL);
	say("ring after a failed exec", nop(&ring, IOSQE_ASYNC));
	io_uring_queue_exit(&ring);
	open_ring();
	say("new ring", nop(&ring, IOSQE_ASYNC));
	execl("/bin/sh", "sh", "-c", "ulimit -Sn", NULL);
}

static void lowest(void)
{
	int before = dup(0);
	close(before);
	open_ring();
	nop(&ring, IOSQE_ASYNC);
	/* The kernel's ring takes the lowest number; ours takes none of the low ones. */
	int after = dup(0);
	say("next", after - before - (ring.ring_fd == before));
}

static void spawned(void)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	char *argv[] = { "sh", "-c", "exit 3", NULL };
	pid_t pid;
	open_ring();
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclose(&actions, ring.ring_fd);
	say("spawn", posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ));
	say("child", child(pid));
	say("ring", nop(&ring, 0));
}

static void vforked(void)
{
	open_ring();
	pid_t pid = vfork();
	if (pid == 0) {
		close(ring.ring_fd);
		close_range(3, ~0U, 0);
		execl("/bin/sh", "sh", "-c", "exit 3", NULL);
		_exit(1);
	}
	say("child", child(pid));
	say("ring", nop(&ring, IOSQE_ASYNC));
}

static struct io_uring second;
static volatile int in_handler = -1, handled;

static void on_alarm(int signal)
{
	(void)signal;
	in_handler = nop(&second, 0);
	handled++;
}

static void signals(void)
{
	struct io_uring_cqe *cqe;
	struct sigaction action = { .sa_handler = on_alarm };
	sigfillset(&action.sa_mask);
	open_ring();
	io_uring_queue_init(4, &second, 0);
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	say("wait", io_uring_wait_cqe(&ring, &cqe));
	say("handled", handled);
	say("in the handler", in_handler);
	say("ring", nop(&ring, 0));
	say("second", nop(&second, 0));
}

static void *thread(void *unused)
{
	for (int i = 0; i < 50; i++)
		if (nop(&second, i % 2 ? IOSQE_ASYNC : 0) != 0)
			say("failed", i);
	return unused;
}

static void threads(void)
{
	pthread_t id;
	open_ring();
	io_uring_queue_init(4, &second, 0);
	for (int i = 0; i < 20; i++) {
		pthread_create(&id, NULL, thread, NULL);
		say("meanwhile", nop(&ring, IOSQE_ASYNC));
		pthread_join(id, NULL);
	}
}

static void identity(void)
{
	open_ring();
	say("before", nop(&ring, IOSQE_ASYNC));
	say("setgid", setgid(65534));
	say("setuid", setuid(65534));
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	io_uring_prep_openat(sqe, AT_FDCWD, "/etc/shadow", O_RDONLY, 0);
	sqe->flags = IOSQE_ASYNC;
	io_uring_submit(&ring);
	io_uring_wait_cqe(&ring, &cqe);
	say("shadow", cqe->res);
}

static void maps(void)
{
	open_ring();
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ring.ring_fd, IORING_OFF_SQ_RING);
	say("mapped", map != MAP_FAILED);
	submit_nop();
	say("tail", *(unsigned *)((char *)map + 4));
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ring.ring_fd, 0x50000000);
	say("odd offset", map == MAP_FAILED ? errno : 0);
	int zero = open("/dev/zero", O_RDWR);
	int there = dup2(zero, ring.ring_fd);
	say("replaced", there == ring.ring_fd);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, there, 0);
	say("mapped a file there", map != MAP_FAILED);
	say("closed", close(there));
	say("closed", close(there) == -1 ? errno : 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{ "forked", forked }, { "forked-use", forked_use }, { "duplicates", duplicates },
		{ "readiness", readiness }, { "ranges", ranges }, { "loop-close", loop_close },
		{ "limits", limits }, { "lowest", lowest }, { "spawned", spawned },
		{ "vforked", vforked }, { "signals", signals }, { "threads", threads },
		{ "identity", identity }, { "maps", maps },
	};
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].name)) {
			ways[i].run();
			return 0;
		}
	}
	fprintf(stderr, "no such way\n");
	return 2;
}
