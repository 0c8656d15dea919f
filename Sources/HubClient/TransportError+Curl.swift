import CCurl
import ProfileSync

extension TransportError {
  /// The error that a libcurl code stands for.
  ///
  /// - Parameters:
  ///   - curlCode: A `CURLcode` other than `CURLE_OK`; one that is not listed is ``Code/other``.
  ///   - exchange: What the sentence calls the exchange; without token and query.
  package init(curlCode: UInt32, exchange: String) {
    let (code, sentence) = TransportError.meaning(of: CURLcode(rawValue: curlCode))
    self.init(code: code, description: "\(exchange): \(sentence) (libcurl \(curlCode))")
  }

  /// The exchange's task was cancelled, or the connection closed.
  static func cancelled(exchange: String) -> TransportError {
    TransportError(
      code: .cancelled, description: "\(exchange): cancelled; send it again if it still matters")
  }

  static func answerTooLarge(exchange: String, byteCountMax: Int) -> TransportError {
    TransportError(
      code: .answerTooLarge,
      description: "\(exchange): the answer has more than \(byteCountMax) bytes; ask for less")
  }

  static func stalled(exchange: String, limit: Duration) -> TransportError {
    TransportError(
      code: .timedOut,
      description: "\(exchange): no byte moved for \(limit); try again later")
  }

  private static func meaning(of curlCode: CURLcode) -> (Code, String) {
    switch curlCode {
    case CURLE_COULDNT_RESOLVE_HOST:
      (.unreachable, "the name of the hub's host was not found; check it, or try again later")
    case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_INTERFACE_FAILED:
      (.unreachable, "no connection was made; is the hub running? Try again later")
    case CURLE_OPERATION_TIMEDOUT:
      (.timedOut, "it took too long; try again later")
    case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR:
      (.connectionLost, "the connection ended before the whole answer came; send it again")
    case CURLE_FILESIZE_EXCEEDED:
      (.answerTooLarge, "the answer is larger than it may be; ask for less")
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
      CURLE_SSL_ENGINE_INITFAILED, CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
      (
        .tlsFailed,
        "no trusted encrypted connection was made; check the address and the hub's certificate"
      )
    case CURLE_URL_MALFORMAT:
      (.invalidURL, "the hub's address cannot be used; correct it")
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
      // The scheme was checked before: what is not supported is the answer.
      (.other, "what answered speaks no HTTP/1.1; check the address")
    default:
      (.other, "\(String(cString: curl_easy_strerror(curlCode))); try again later")
    }
  }
}
