internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@Suite struct SHA256Tests {
    /// The examples of FIPS 180-2, appendix B, and the digest of an empty body.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ])
    func `a body's digest is its SHA-256`(text: String, digest: String) async throws {
        let body = try await BodySpool(files: SimulatedSpoolFiles()).store(Data(text.utf8))
        #expect(body.digest.description == digest)
        #expect(body.size == text.utf8.count)
    }

    @Test func `only 64 hexadecimal digits in lower case are parsed as a digest`() throws {
        let text = String(repeating: "0f9a", count: 16)
        #expect(try #require(SHA256Digest(text)).description == text)
        for wrong in [
            "", text + "0", String(text.dropLast(2)), text.uppercased(), text.replacing("f", with: "ü"),
        ] {
            #expect(SHA256Digest(wrong) == nil)
        }
    }

    @Test func `a manipulated store cannot refer to files outside the spool`() {
        let (name, digest) = (
            String(repeating: "a", count: 32), SHA256Digest(String(repeating: "0", count: 64))
        )
        #expect(SpooledBody(row: name, size: 0, digest: digest) != nil)
        for wrong in [
            "", "../" + name, name + ".part", String(name.dropLast()) + "/", name.uppercased(), name + "\0",
            String(name.dropLast(3)) + "/..",
        ] {
            #expect(SpooledBody(row: wrong, size: 0, digest: digest) == nil)
        }
        #expect(SpooledBody(row: name, size: -1, digest: digest) == nil)
        #expect(SpooledBody(row: name, size: 0, digest: nil) == nil)
    }
}
