// HTTP and nothing else: a client that asks for bytes and drops them, and a server that takes bytes and
// answers with some.
#include "CBench.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

const char *cbench_http_message(int code) { return curl_easy_strerror((CURLcode)code); }

static size_t take(char *bytes, size_t size, size_t count, void *received) {
  (void)bytes;
  *(uint64_t *)received += size * count;
  return size * count;
}

static CURLcode set_up(CURL *easy, struct curl_slist *headers, uint64_t *received) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, received);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PROXY, "");
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 128L << 10);
  return code;
}

static CURLcode perform(CURL *easy, const struct cbench_exchange *exchange) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, exchange->url);
  if (code == CURLE_OK && exchange->body) {
    code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->body);
    if (code == CURLE_OK)
      code = curl_easy_setopt(
          easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_size);
  }
  return code == CURLE_OK ? curl_easy_perform(easy) : code;
}

struct cbench_pass cbench_http_exchange(
    const struct cbench_exchange *exchanges, size_t count, const char *const *headers,
    size_t header_count) {
  struct cbench_pass pass = {0};
  CURL *easy = curl_easy_init();
  struct curl_slist *list = NULL;
  if (!easy) abort();
  for (size_t index = 0; index < header_count; index++) {
    list = curl_slist_append(list, headers[index]);
    if (!list) abort();
  }
  uint64_t start = cbench_now();
  CURLcode code = set_up(easy, list, &pass.extra);
  for (size_t index = 0; index < count && code == CURLE_OK; index++) {
    code = perform(easy, &exchanges[index]);
    if (code == CURLE_OK) pass.operations++;
  }
  pass.nanoseconds = cbench_now() - start;
  pass.code = (int)code;
  pass.call = "curl_easy_perform";
  curl_slist_free_all(list);
  curl_easy_cleanup(easy);
  return pass;
}

// MARK: - The server

enum { answer_size_max = 4 << 20 };

struct cbench_echo {
  struct MHD_Daemon *daemon;
  char *answer;
};

// The path says how long the answer is: `/1234`.
static enum MHD_Result answer(
    void *context, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_size, void **state) {
  (void)method, (void)version, (void)upload;
  struct cbench_echo *echo = context;
  if (!*state) {
    *state = echo;
    return MHD_YES;
  }
  if (*upload_size > 0) {
    *upload_size = 0;
    return MHD_YES;
  }
  size_t size = strtoul(url + 1, NULL, 10);
  if (size > answer_size_max) return MHD_NO;
  struct MHD_Response *response =
      MHD_create_response_from_buffer(size, echo->answer, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return result;
}

struct cbench_echo *cbench_echo_start(uint16_t *port) {
  struct cbench_echo *echo = calloc(1, sizeof *echo);
  if (!echo || !(echo->answer = calloc(1, answer_size_max))) abort();
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  echo->daemon = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, answer, echo,
      MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_END);
  const union MHD_DaemonInfo *info =
      echo->daemon ? MHD_get_daemon_info(echo->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
  if (!info || info->port == 0) {
    cbench_echo_stop(echo);
    return NULL;
  }
  *port = info->port;
  return echo;
}

void cbench_echo_stop(struct cbench_echo *echo) {
  if (echo->daemon) MHD_stop_daemon(echo->daemon);
  free(echo->answer);
  free(echo);
}
