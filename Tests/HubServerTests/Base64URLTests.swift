import HubServer
import Testing

@Suite("Base64url of tokens")
struct Base64URLTests {
  @Test(
    "what is encoded decodes to the same bytes, without padding",
    arguments: [[], [0], [255], [0, 1], [1, 2, 3], [250, 251, 252, 253], Array(0...255)])
  func roundTrip(bytes: [UInt8]) {
    let text = Base64URL.encode(bytes)
    #expect(!text.contains("="))
    #expect(Base64URL.decode(text.utf8) == bytes)
  }

  @Test(
    "a second spelling of the same bytes is refused",
    arguments: ["AA==", "AA=", "AB", "AAF", "A", "+A", "/A", "A A", "AA\n", "AA.", "ÄA"])
  func anotherSpelling(text: String) {
    #expect(Base64URL.decode(text.utf8) == nil)
  }

  @Test("the test vectors of RFC 4648 section 10 hold")
  func vectors() {
    let vectors = ["f": "Zg", "fo": "Zm8", "foo": "Zm9v", "foob": "Zm9vYg", "foobar": "Zm9vYmFy"]
    for (plain, text) in vectors {
      #expect(Base64URL.encode(Array(plain.utf8)) == text)
      #expect(Base64URL.decode(text.utf8) == Array(plain.utf8))
    }
  }
}
