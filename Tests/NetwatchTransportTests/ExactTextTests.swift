internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// Text that represents arbitrary bytes.
@Suite struct ExactTextTests {
    @Test(arguments: [
        [], Array("text".utf8), Array("caf\u{e9} \u{ffff} \u{f600}".utf8), [0x63, 0xe9], [0xc3, 0xa9],
        [0xe9, 0xc3, 0xa9],
        Array("\u{f7e9}".utf8), [0xef, 0x9f, 0xa9, 0xff],
    ])
    func `the bytes are encoded again as they were`(bytes: [UInt8]) {
        #expect(ExactText.encode(ExactText.decode(bytes)) == bytes)
    }

    @Test func `random bytes and their parts are encoded again as they were`() {
        var generator = SeededGenerator(seed: 18)
        // Short texts of few bytes, so that many of them are UTF-8, and many contain a private character.
        let alphabet = Array("==\u{e9}\u{f7e9}\u{f7e9}".utf8) + [0xff]
        let separator = UInt8(ascii: "=")
        for _ in 0..<10_000 {
            let count = Int.random(in: 0...8, using: &generator)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &generator)! }
            let text = ExactText.decode(bytes)
            #expect(ExactText.encode(text) == bytes)
            let texts = text.unicodeScalars.split(separator: "=", omittingEmptySubsequences: false)
            let parts = bytes.split(separator: separator, omittingEmptySubsequences: false)
            #expect(texts.map { ExactText.encode(String($0)) } == parts.map { Array($0) }, "\(bytes)")
        }
    }

    @Test func `valid UTF-8 is represented by its text, and other bytes by other texts`() {
        #expect(ExactText.decode([0xc3, 0xa9]) == "\u{e9}")
        #expect(ExactText.decode([0xe9]) == "\u{f7e9}")
    }

    @Test(arguments: ["text", "caf\u{e9}", "\u{f7e9}", "a\u{f780}b\u{f7ff}"])
    func `any text can be represented`(text: String) {
        #expect(ExactText.encode(ExactText.representing(text)) == Array(text.utf8))
    }
}
