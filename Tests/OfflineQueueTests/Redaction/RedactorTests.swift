internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// How secrets are found and replaced in texts and bodies.
@Suite struct RedactorTests {
    /// It contains characters that each kind of escape changes. Its Base64 contains `+` and `/`.
    private static let secret = #"k?>~&"/\é%41 <>>???z"#

    private func redactor(
        _ values: String...,
        isCertain: Bool = true,
        isBodyEncoded: Bool = false
    ) -> Redactor {
        let secrets = values.map { Redactor.Secret(value: $0, isCertain: isCertain) }
        return Redactor(Set(secrets), isBodyEncoded: isBodyEncoded)
    }

    private func redacted(_ body: String, by redactor: Redactor) -> String {
        let kept = redactor.body(Data(body.utf8), isTruncated: false, limit: 65_536)
        return String(decoding: kept.bytes, as: UTF8.self)
    }

    // MARK: Spellings

    @Test func `a secret is found with each kind of escape, and with two of them`() {
        let secret = Self.secret
        // All bytes of the secret have two hexadecimal digits.
        let lowerCase = secret.utf8.map { "%" + String($0, radix: 16) }.joined()
        let mixedCase = lowerCase.enumerated().map { index, character in
            index.isMultiple(of: 2) ? character.uppercased() : String(character)
        }.joined()
        let json = secret.replacing("\\", with: #"\\"#).replacing("\"", with: #"\""#)
        let jsonCodes = secret.utf16.map { #"\u00"# + String($0, radix: 16) }.joined()
        let html = secret.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
        let htmlCodes = secret.unicodeScalars.map { "&#\($0.value);" }.joined()
        let htmlDigits = secret.unicodeScalars.map { "&#x\(String($0.value, radix: 16));" }.joined()
        // Only reserved characters are escaped.
        let query = secret.addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed)!
        let form = secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
            .replacing("%20", with: "+")
        let spellings: [String] = [
            secret, lowerCase, lowerCase.uppercased(), mixedCase, query, form, json,
            json.replacing("/", with: #"\/"#).replacing("é", with: #"\u00e9"#), jsonCodes, html, htmlCodes,
            htmlDigits, lowerCase.replacing("%", with: "%25"), lowerCase.replacing("%", with: #"\u0025"#),
        ]
        let redactor = redactor(secret)
        let results = spellings.map { redacted("<\($0)>", by: redactor) }
        let failures = zip(spellings, results).filter { $1 != "<REDACTED>" }
        #expect(failures.isEmpty, "\(failures)")
        #expect(spellings.map { redactor.text("<\($0)>") } == results)
    }

    @Test func `a secret is found in Base64 at each position, in both alphabets`() {
        let redactor = redactor(Self.secret)
        var failures: [String] = []
        for before in 0..<4 {
            for after in 0..<4 {
                let start = String(repeating: "a", count: before)
                let text = start + Self.secret + String(repeating: "b", count: after)
                let base64 = Data(text.utf8).base64EncodedString()
                let urlSafe = base64.replacing("+", with: "-").replacing("/", with: "_")
                let encodings: [String] = [
                    base64, urlSafe, urlSafe.filter { $0 != "=" }, base64.replacing("/", with: #"\/"#),
                    base64.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!,
                    base64.enumerated().map { ($0 % 7 == 6 ? "\r\n" : "") + String($1) }.joined(),
                ]
                for encoded in encodings {
                    let result = redacted(encoded, by: redactor)
                    // At most one group of four remains before and after the secret, and the padding.
                    let isShort = result.utf8.count <= "REDACTED".count + 2 * 4 + 2 * "%3D".count + 2
                    if !isShort || !result.contains("REDACTED") { failures.append("\(encoded) → \(result)") }
                }
            }
        }
        #expect(failures.isEmpty, "\(failures)")
        let encoded = Data(Self.secret.utf8).base64EncodedString()
        #expect(encoded.contains("+") && encoded.contains("/"), "the alphabets differ")
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func `random secrets are replaced, and nothing else is`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func text(_ length: Int, _ alphabet: ClosedRange<UInt8>) -> String {
            let bytes = (0..<length).map { _ in UInt8.random(in: alphabet, using: &generator) }
            return String(decoding: bytes, as: UTF8.self)
        }
        // The digits of the rest occur in no form of these secrets that has 8 characters.
        let secrets = (0..<3).map { _ in text(Int.random(in: 8...40, using: &generator), 58...126) }
        let (before, after) = (text(500, 48...57), text(500, 48...57))
        let written = secrets.shuffled(using: &generator).map { secret in
            secret.utf8.map { byte in
                Bool.random(using: &generator)
                    ? "%" + String(byte, radix: 16) : String(Unicode.Scalar(byte))
            }.joined()
        }
        let redactor = Redactor(Set(secrets.map { Redactor.Secret(value: $0, isCertain: true) }))
        let result = redacted(before + written.joined(separator: "\n") + after, by: redactor)
        #expect(result == before + "REDACTED\nREDACTED\nREDACTED" + after, "seed \(seed): \(secrets)")
    }

    @Test func `overlapping secrets, binary bodies and text without secrets`() {
        let redactor = redactor("token-value", "value-and-more", "Bearer token-value")
        #expect(redacted("[Bearer token-value-and-more]", by: redactor) == "[REDACTED]")
        #expect(redacted("[token-value,value-and-more]", by: redactor) == "[REDACTED,REDACTED]")
        let binary = Data([0, 255, 128] + Array("token-value".utf8) + [0, 200])
        let kept = redactor.body(binary, isTruncated: false, limit: 65_536)
        #expect(kept.bytes == Data([0, 255, 128] + Array("REDACTED".utf8) + [0, 200]) && kept.isChanged)
        let other = Data(#"{"a":"%zz%2","b":"\u12","c":"&x;&#;&#-1;","d":"token-valu"}\"#.utf8)
        let unchanged = redactor.body(other, isTruncated: false, limit: 65_536)
        #expect(unchanged == Redactor.KeptBody(bytes: other, isTruncated: false, isChanged: false))
    }

    // MARK: Ends

    @Test func `a secret across the end of the kept part is found`() {
        let secret = "0123456789abcdef"
        let start = String(repeating: "x", count: 95)
        let body = start + secret + String(repeating: "y", count: 1000)
        let kept = redactor(secret).body(Data(body.utf8), isTruncated: false, limit: 100)
        #expect(kept.bytes == Data("\(start)REDAC".utf8))
        #expect(kept.isTruncated && kept.isChanged)
    }

    @Test func `the end of an incomplete body is not kept, whatever it contains`() {
        let secret = "0123456789abcdef"
        let redactor = redactor(secret)
        let lengths = (0...secret.count).map { length in
            let end = secret.prefix(length) + String(repeating: "z", count: secret.count - length)
            let body = Data((String(repeating: "x", count: 500) + end).utf8)
            let kept = redactor.body(body, isTruncated: true, limit: 65_536)
            // No byte of the secret is kept, and the result is the same for each guess of its beginning.
            let isClean = kept.bytes.allSatisfy { $0 == UInt8(ascii: "x") }
            return kept.isTruncated && isClean ? kept.bytes.count : -1
        }
        #expect(Set(lengths) == [516 - redactor.lookahead] && redactor.lookahead >= 6 * secret.count)
    }

    @Test func `long secrets are found, and nothing is kept if all together are too long`() {
        func redactor(_ values: [String]) -> Redactor {
            Redactor(Set(values.map { Redactor.Secret(value: $0, isCertain: true) }))
        }
        let values = (0..<50).map { String(repeating: "a", count: 600) + "\($0)" }
        #expect(redacted("<\(values[49])>", by: redactor(values)) == "<REDACTED>")
        let tooLong = redactor(values + [String(repeating: "b", count: 5000)])
        #expect(tooLong.text("a text") == "REDACTED" && redacted("a body", by: tooLong).isEmpty)
    }

    @Test func `the limit applies after the replacement`() {
        let redactor = redactor("12345678")
        func kept(_ body: String) -> Redactor.KeptBody {
            redactor.body(Data(body.utf8), isTruncated: false, limit: 12)
        }
        let whole = Redactor.KeptBody(bytes: Data("REDACTED and".utf8), isTruncated: false, isChanged: true)
        #expect(kept("12345678 and") == whole)
        let cut = Redactor.KeptBody(bytes: Data("REDACTED a".utf8), isTruncated: true, isChanged: true)
        #expect(kept("1234567%38 and") == cut)
    }

    // MARK: Bodies that are not kept

    @Test func `a body is not kept if a secret is short or the body is encoded`() {
        let body = Data("body".utf8)
        let dropped = Redactor.KeptBody(bytes: Data(), isTruncated: true, isChanged: true)
        let whole = Redactor.KeptBody(bytes: body, isTruncated: false, isChanged: false)
        func kept(_ redactor: Redactor, _ body: Data) -> Redactor.KeptBody {
            redactor.body(body, isTruncated: false, limit: 65_536)
        }
        #expect(kept(redactor("1234567"), body) == dropped)
        #expect(kept(redactor("12345678", "é"), body) == dropped)
        #expect(kept(redactor("12345678", isBodyEncoded: true), body) == dropped)
        #expect(kept(redactor("1234567", isCertain: false), body) == whole)
        #expect(kept(redactor("", "12345678"), body) == whole && kept(.none, body) == whole)
        let empty = kept(redactor("1234567"), Data())
        #expect(empty == Redactor.KeptBody(bytes: Data(), isTruncated: false, isChanged: false))
        #expect(redactor("1234567").text("a 1234567 b") == "a REDACTED b")
    }
}
