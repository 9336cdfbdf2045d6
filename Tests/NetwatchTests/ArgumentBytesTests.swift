internal import Testing

@testable internal import netwatch

/// The values of options that can be any bytes.
@Suite struct ArgumentBytesTests {
    private static let values: [(bytes: [UInt8], text: String)] = [
        ([0xC3, 0xA9, 0xE2, 0x82, 0xAC], "é€"), ([0x61, 0xFF, 0x62], #"a\xffb"#), ([0xC3], #"\xc3"#),
        // A character without its last byte, and a byte that continues none.
        ([0xE2, 0x82, 0x61, 0x82], #"\xe2\x82a\x82"#),
        // A private character.
        ([0xEF, 0x9E, 0x80, 0xFF], #"\xef\x9e\x80\xff"#),
        // ESC, and the control character U+009B, which begins a sequence as ESC and a bracket do.
        ([0x61, 0x1B, 0xC2, 0x9B], #"a\x1b\xc2\x9b"#),
        // U+202E, which reverses the order of what follows.
        ([0xE2, 0x80, 0xAE, 0x61], #"\xe2\x80\xaea"#),
    ]

    @Test(arguments: values)
    func `bytes that are not UTF-8 are printed in hexadecimal`(bytes: [UInt8], text: String) {
        #expect("\(ArgumentBytes(bytes))" == text)
    }

    @Test func `only the parts of a message that represent bytes are changed`() {
        #expect(ArgumentBytes.printable("é: `\u{f7ff}`") == #"é: `\xff`"#)
        #expect(ArgumentBytes.printable("\u{1B}[1m\u{f7c3}\u{f7a9}\n") == "\u{1B}[1mé\n")
        #expect(ArgumentBytes.printable("`\u{f7c2}\u{f79b}\u{f7ff}`") == #"`\xc2\x9b\xff`"#)
        #expect(ArgumentBytes.printable("é") == "é")
    }

    @Test func `a body is the argument, a file or standard input`() {
        func input(_ text: String) -> BodyInput { BodyInput(data: ArgumentBytes(text.utf8)) }
        #expect(input("a@") == .bytes([0x61, 0x40]))
        #expect(input("@-") == .standardInput)
        #expect(input("@a") == .file(ArgumentBytes(argument: "a")))
        // A combining character after the `@` belongs to the name.
        #expect(input("@\u{301}") == .file(ArgumentBytes(argument: "\u{301}")))
    }
}
