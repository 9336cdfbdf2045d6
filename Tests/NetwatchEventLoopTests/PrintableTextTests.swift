internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct PrintableTextTests {
    private static let escaped: [(text: String, printable: String)] = [
        ("a\nb\rc\td\0\u{7F}", #"a\nb\rc\td\u{0}\u{7F}"#),
        // The control character U+009B begins a sequence as ESC and a bracket do.
        ("\u{1B}[31m\u{9B}31m\u{85}", #"\u{1B}[31m\u{9B}31m\u{85}"#),
        // They change the order of characters.
        ("\u{202E}a\u{202C}\u{2066}b\u{2069}\u{061C}", #"\u{202E}a\u{202C}\u{2066}b\u{2069}\u{61C}"#),
        ("\u{2028}\u{2029}", #"\u{2028}\u{2029}"#),
        // They have no width: spaces, joiners, a byte order mark, a soft hyphen, tags.
        ("a\u{200B}b\u{FEFF}c\u{AD}d\u{E0041}", #"a\u{200B}b\u{FEFF}c\u{AD}d\u{E0041}"#),
        ("👩\u{200D}💻 می\u{200C}خواهم", #"👩\u{200D}💻 می\u{200C}خواهم"#),
        // They have no width although they are letters or marks.
        ("\u{3164}\u{115F}\u{34F}❤\u{FE0F}", #"\u{3164}\u{115F}\u{34F}❤\u{FE0F}"#),
        // Private use, and unassigned.
        ("\u{E000}\u{F8FF}\u{10FFFD}\u{FFFF}\u{378}", #"\u{E000}\u{F8FF}\u{10FFFD}\u{FFFF}\u{378}"#),
    ]

    @Test(arguments: escaped)
    func `a character that is not printable is escaped, and the result is printable`(
        text: String,
        printable: String
    ) {
        // Equal scalars: equal strings may have different ones.
        #expect(Array(text.printable.unicodeScalars) == Array(printable.unicodeScalars))
        #expect(printable.printable.unicodeScalars.elementsEqual(printable.unicodeScalars))
        #expect(text.printableLiteral.unicodeScalars.allSatisfy { $0.isPrintable })
    }

    @Test(arguments: ["", "a ~", #"C:\u{41}\n"#, "bücher ✓ e\u{301} 日本 שלום 10\u{A0}kB 🇩🇪 𝔘"])
    func `a printable text is unchanged`(text: String) {
        #expect(text.printable.unicodeScalars.elementsEqual(text.unicodeScalars))
    }

    @Test func `a limited text is not cut within a character or an escape`() {
        let text = "aé\u{202E}b"
        let texts = [0, 1, 2, 3, 10, 11, 12, 99].map { text.printable(upTo: $0) }
        #expect(texts == ["", "a", "a", "aé", "aé", #"aé\u{202E}"#, #"aé\u{202E}b"#, #"aé\u{202E}b"#])
    }
}
