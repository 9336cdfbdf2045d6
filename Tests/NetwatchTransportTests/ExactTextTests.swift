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

    @Test func `valid UTF-8 is represented by its text, and other bytes by other texts`() {
        #expect(ExactText.decode([0xc3, 0xa9]) == "\u{e9}")
        #expect(ExactText.decode([0xe9]) == "\u{f7e9}")
    }

    @Test(arguments: ["text", "caf\u{e9}", "\u{f7e9}", "a\u{f780}b\u{f7ff}"])
    func `any text can be represented`(text: String) {
        #expect(ExactText.encode(ExactText.representing(text)) == Array(text.utf8))
    }
}
