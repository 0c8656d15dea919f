#pragma once
// What Swift cannot call: variadic functions, and the macros around them.
#include <microhttpd.h>
#include <string.h>

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
