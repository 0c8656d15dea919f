#pragma once
// What Swift cannot call: variadic functions, and the macros around them.
#include <errno.h>
#include <microhttpd.h>
#include <stdint.h>
#include <string.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

typedef void *(*holdfast_request_started)(void *context, const char *target,
                                          struct MHD_Connection *connection);

// Unescaping that changes nothing: the hub decodes on its own, so that NUL and '/' in an escape
// cannot change a path, and '+' stays a plus.
static inline size_t holdfast_keep_escapes(void *context, struct MHD_Connection *connection,
                                           char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

// Starts a daemon with one thread of its own that waits with epoll on a socket that listens.
static inline struct MHD_Daemon *holdfast_start_daemon(
    int listening_socket, unsigned int connection_limit, size_t connection_memory,
    unsigned int idle_seconds, MHD_AccessHandlerCallback handler,
    holdfast_request_started started, MHD_RequestCompletedCallback completed,
    MHD_NotifyConnectionCallback connection_changed, void *context) {
  return MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, context,
      MHD_OPTION_LISTEN_SOCKET, listening_socket,
      MHD_OPTION_CONNECTION_LIMIT, connection_limit,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
      MHD_OPTION_URI_LOG_CALLBACK, started, context,
      MHD_OPTION_UNESCAPE_CALLBACK, holdfast_keep_escapes, NULL,
      MHD_OPTION_NOTIFY_COMPLETED, completed, context,
      MHD_OPTION_NOTIFY_CONNECTION, connection_changed, context,
      MHD_OPTION_END);
}

// Whether a connection was just taken; else it is about to be closed.
static inline int holdfast_is_opened(enum MHD_ConnectionNotificationCode code) {
  return code == MHD_CONNECTION_NOTIFY_STARTED;
}

// Calls an iterator with each header field, in the order in which they were sent.
static inline void holdfast_each_header(struct MHD_Connection *connection,
                                        MHD_KeyValueIteratorN iterator, void *context) {
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, iterator, context);
}

// A response with a copy of the bytes.
static inline struct MHD_Response *holdfast_make_response(const void *bytes, size_t count) {
  return MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

// The socket of a connection, or -1.
static inline int holdfast_connection_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

// The bytes of the head, from the method to the empty line.
static inline size_t holdfast_head_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info == NULL ? 0 : info->header_size;
}

// A response whose length is not known before it ends.
static inline struct MHD_Response *holdfast_make_endless_response(
    size_t block, MHD_ContentReaderCallback reader, void *context,
    MHD_ContentReaderFreeCallback release) {
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block, reader, context, release);
}

// What a reader returns when nothing will follow.
static inline ssize_t holdfast_end_of_stream(void) { return MHD_CONTENT_READER_END_OF_STREAM; }

// What a reader returns to end the connection without an end of the body.
static inline ssize_t holdfast_end_with_error(void) { return MHD_CONTENT_READER_END_WITH_ERROR; }

// Tells which of many sockets were closed at the other end, each once, whatever bytes they still
// have to read. Of the systems that this runs on only Linux can be asked that; elsewhere -1.
static inline int holdfast_hang_ups_make(void) {
#ifdef __linux__
  return epoll_create1(EPOLL_CLOEXEC);
#else
  errno = ENOSYS;
  return -1;
#endif
}

// Watches a socket under a name, in place of the name that it may have had. A socket that is closed
// here is watched no longer.
static inline int holdfast_hang_ups_watch(int hang_ups, int socket, uint64_t name) {
#ifdef __linux__
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = name;
  if (epoll_ctl(hang_ups, EPOLL_CTL_ADD, socket, &event) == 0) return 0;
  if (errno != EEXIST) return -1;
  return epoll_ctl(hang_ups, EPOLL_CTL_MOD, socket, &event);
#else
  (void)hang_ups;
  (void)socket;
  (void)name;
  errno = ENOSYS;
  return -1;
#endif
}

// Waits until at least one has hung up; 64 names at most. 0 after a signal, -1 for an error.
static inline int holdfast_hang_ups_wait(int hang_ups, uint64_t *names) {
#ifdef __linux__
  struct epoll_event events[64];
  int count = epoll_wait(hang_ups, events, 64, -1);
  if (count < 0) return errno == EINTR ? 0 : -1;
  for (int place = 0; place < count; place++) names[place] = events[place].data.u64;
  return count;
#else
  (void)hang_ups;
  (void)names;
  errno = ENOSYS;
  return -1;
#endif
}
