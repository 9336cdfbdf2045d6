internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The encodings that a `Content-Type` may name, compared with iconv(1).
@Suite(.timeLimit(.minutes(5))) struct CharsetTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    /// Returns the characters of the bytes 0x80 to 0xFF in a charset, according to iconv; `nil` for an undefined byte.
    private func upperHalf(_ charset: String) async throws -> [String?] {
        let bytes: [UInt8] = (0x80...0xFF).flatMap { [$0, 0x0A] }
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file("bytes")))
        let iconv = try Subprocess(
            "/usr/bin/iconv",
            ["-c", "-f", charset, "-t", "UTF-8", directory.file("bytes")]
        )
        return try await iconv.outcome().output.map { $0.isEmpty ? nil : $0 }
    }

    private static let singleByteCharsets =
        (1...16).filter { $0 != 12 }.map { "iso-8859-\($0)" }
        + (1250...1258).map { "windows-\($0)" } + ["koi8-r"]

    @Test(arguments: singleByteCharsets)
    func `each byte is decoded as by iconv`(charset: String) async throws {
        let encoding = try #require(String.Encoding(charset: charset))
        let expected = try await upperHalf(charset)
        try #require(expected.count == 128)
        for (byte, text) in zip(UInt8(0x80)...0xFF, expected) {
            guard let text else { continue }
            #expect(String(data: Data([byte]), encoding: encoding) == text, "\(charset) \(byte)")
        }
    }

    @Test(
        arguments: [
            ("utf-8", "é日𝄞"), ("utf-16", "é日𝄞"), ("utf-16be", "é日𝄞"), ("utf-16le", "é日𝄞"), ("utf-32", "é日𝄞"),
            ("utf-32be", "é日𝄞"), ("utf-32le", "é日𝄞"), ("us-ascii", "plain ~"), ("shift_jis", "日本語テキスト"),
            ("iso-2022-jp", "abc 日本語テキスト"), ("gb18030", "中文é𝄞"), ("gbk", "中文字"),
            ("gb2312", "中文字"), ("big5", "中文字"), ("euc-kr", "한국어"), ("iso-8859-11", "ภาษาไทย"),
        ]
    )
    func `text encoded by iconv is decoded`(charset: String, text: String) async throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("text")))
        let output = directory.file("encoded")
        let iconv = try Subprocess(
            "/usr/bin/iconv",
            ["-f", "UTF-8", "-t", charset, "-o", output, directory.file("text")]
        )
        #expect(try await iconv.end() == .exited(0))
        let data = try Data(contentsOf: URL(fileURLWithPath: output))
        let response = head(type: "text/plain; charset=\(charset)")
        let result = Request.serializeResponseString(
            encoding: nil,
            response: response,
            data: data,
            error: nil
        )
        #expect(result.value == text)
    }

    @Test(
        arguments: [
            ("text/html; charset=utf-8", "utf-8"), ("text/html;Charset=\"UTF-8\"", "UTF-8"),
            ("text/html; a=b ;\tcharset = koi8-r ", "koi8-r"),
            ("text/html; a=\"; charset=x\"; charset=y", "y"),
            (#"text/html; a="\"; charset=x"; charset="k\oi8-r""#, "koi8-r"), ("text/html; charset=", ""),
            ("text/html", nil), ("charset=utf-8", nil), ("text/html; charset", nil), ("", nil),
            ("text/html; xcharset=utf-8", nil), ("text/html; charset=a; charset=b", "a"),
            ("text/html; a=\"; charset=x", nil), (";;;=;charset=\"", "\""),
        ] as [(String, String?)]
    )
    func `the charset is found after other parameters`(field: String, charset: String?) {
        #expect(MediaTypeParameters.value(of: "charset", in: field) == charset)
    }

    @Test func `charset names ignore case, and an unknown name has no encoding`() {
        #expect(String.Encoding(charset: "UtF-8") == .utf8)
        #expect(String.Encoding(charset: "Latin1") == .isoLatin1)
        for name in ["", "utf-7", "euc-jp", "none-such", "\0", "utf-8 "] {
            #expect(String.Encoding(charset: name) == nil)
        }
    }

    @Test(arguments: UInt64(1)...4)
    func `random bytes are text or an error in every encoding`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for charset in Self.singleByteCharsets + ["utf-8", "utf-16", "utf-32", "shift_jis"]
            + ["iso-2022-jp", "gb18030", "big5", "euc-kr"]
        {
            for _ in 0..<50 {
                let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    Bool.random(using: &random) ? 0x1B : UInt8.random(in: 0...255, using: &random)
                }
                let head = head(type: "text/plain; charset=\(charset)")
                let serializer = DataRequest.stringResponseSerializer()
                let result = serializer.serializeResponse(nil, head, Data(bytes), nil)
                #expect(result.isSuccess || serializationFailure(result) == "stringSerializationFailed")
            }
        }
    }
}
