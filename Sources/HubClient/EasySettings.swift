import CCurl
import Foundation

/// Sets the options of one libcurl handle and keeps the first refusal.
final class EasySettings {
  private let easy: UnsafeMutableRawPointer
  /// `CURLE_OK`, or the first refusal.
  private(set) var result = CURLE_OK

  init(_ easy: UnsafeMutableRawPointer) {
    self.easy = easy
  }

  /// What holds for every exchange, for the safety of the token and of the process.
  func applyFixed(scheme: String) {
    set(CURLOPT_PROTOCOLS_STR, text: scheme)
    // A redirect is an answer like any other: the token goes to no other address.
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
    // Empty, not absent: the environment's proxies do not count.
    set(CURLOPT_PROXY, text: "")
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_SSL_VERIFYPEER, 1)
    set(CURLOPT_SSL_VERIFYHOST, 2)
    // A compressed body could be a thousand times as large as its limit.
    set(CURLOPT_HTTP_CONTENT_DECODING, 0)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_NOSIGNAL, 1)
    // Ending an exchange must not wait for a name server.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_BUFFERSIZE, 128 << 10)
  }

  /// What one exchange is about, but for its headers.
  func apply(_ exchange: Exchange) {
    set(CURLOPT_URL, text: exchange.url)
    if let body = exchange.body {
      set(CURLOPT_POST, 1)
      set(body: body)
    } else if exchange.method == "HEAD" {
      set(CURLOPT_NOBODY, 1)
    } else {
      set(CURLOPT_HTTPGET, 1)
    }
    set(CURLOPT_CUSTOMREQUEST, text: exchange.method)
    set(CURLOPT_TIMEOUT_MS, exchange.timeout.curlMilliseconds)
    set(CURLOPT_CONNECTTIMEOUT_MS, exchange.connectTimeout.curlMilliseconds)
    // Refuses by the announced length, before the body; 0 would mean no limit, and the collector
    // counts in any case.
    // Later versions count what comes in, which a stream may go on with for as long as it likes.
    if exchange.answerByteCountMax > 0, !exchange.isStream {
      set(CURLOPT_MAXFILESIZE_LARGE, offset: exchange.answerByteCountMax)
    }
  }

  func set(_ option: CURLoption, _ value: Int) {
    keep(holdfast_curl_set_long(easy, option, value))
  }

  func set(_ option: CURLoption, offset value: Int) {
    keep(holdfast_curl_set_offset(easy, option, curl_off_t(value)))
  }

  func set(_ option: CURLoption, text value: String) {
    keep(holdfast_curl_set_text(easy, option, value))
  }

  /// The list stays the caller's and must live as long as the handle is in use.
  func set(_ option: CURLoption, list: UnsafeMutablePointer<curl_slist>?) {
    keep(holdfast_curl_set_list(easy, option, list))
  }

  func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer) {
    keep(holdfast_curl_set_pointer(easy, option, pointer))
  }

  func set(_ option: CURLoption, callback: @escaping curl_write_callback) {
    keep(holdfast_curl_set_callback(easy, option, callback))
  }

  private func set(body: Data) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, offset: body.count)
    guard !body.isEmpty else {
      // Without any pointer libcurl would ask a read callback, which is standard input.
      set(CURLOPT_COPYPOSTFIELDS, text: "")
      return
    }
    body.withUnsafeBytes { bytes in
      // SAFETY: libcurl copies as many bytes as were announced, in this call.
      keep(
        holdfast_curl_set_pointer(
          easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress)))
    }
  }

  private func keep(_ code: CURLcode) {
    if result == CURLE_OK { result = code }
  }
}
