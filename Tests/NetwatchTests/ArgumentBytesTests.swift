internal import Testing

@testable internal import netwatch

/// The values of options that can be any bytes.
@Suite struct ArgumentBytesTests {
    private static let values: [(bytes: [UInt8], text: String)] = [
        ([0xC3, 0xA9, 0xE2, 0x82, 0xAC], "é€"), ([0x61, 0xFF, 0x62], #"a\xffb"#), ([0xC3], #"\xc3"#),
        // A character without its last byte, and a byte that continues none.
        ([0xE2, 0x82, 0x61, 0x82], #"\xe2\x82a\x82"#),
        // A private character that is UTF-8 remains as it is.
        ([0xEF, 0x9E, 0x80, 0xFF], "\u{f780}\\xff"),
    ]

    @Test(arguments: values)
    func `bytes that are not UTF-8 are printed in hexadecimal`(bytes: [UInt8], text: String) {
        #expect("\(ArgumentBytes(bytes))" == text)
    }

    @Test func `only the parts of a message that represent bytes are changed`() {
        #expect(ArgumentBytes.printable("é: `\u{f7ff}`") == #"é: `\xff`"#)
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
