internal import NetwatchTransport

/// The field that says by what a request was sent (RFC 9110 §10.1.5).
enum UserAgent {
    /// How much of a name is sent. The machine's owner writes them, but servers limit the whole head.
    private static let maximumLength = 64

    /// `program/1.0 (Debian GNU/Linux 12 bookworm; Linux 6.1) netwatch/0.1.0`, without what is not known.
    static func text(for surroundings: ProgramSurroundings) -> String {
        let system = [
            words(surroundings.osRelease.operatingSystemName),
            // The patch level would tell which holes are open.
            surroundings.kernelRelease.versionNumbers(2).map { "Linux \($0)" },
        ]
        let comment = system.compactMap { $0 }.joined(separator: "; ")
        // The field begins with a product, never with a comment.
        let product = program(surroundings).map { [$0] } ?? []
        let parts = product + (comment.isEmpty ? [] : ["(\(comment))"])
        let own = TransferRequest.defaultUserAgent
        return (product.isEmpty ? [own] + parts : parts + [own]).joined(separator: " ")
    }

    private static func program(_ surroundings: ProgramSurroundings) -> String? {
        let name = surroundings.program.split(separator: "/").last ?? ""
        guard let name = token(String(name)) else { return nil }
        return surroundings.programVersion.flatMap(token).map { "\(name)/\($0)" } ?? name
    }

    /// What of the text may be in a token (RFC 9110 §5.6.2).
    private static func token(_ text: String) -> String? {
        let token = text.filter { HTTPToken.isValid(String($0)) }.prefix(maximumLength)
        return token.isEmpty ? nil : String(token)
    }

    /// What of the text may be in a comment (RFC 9110 §5.6.5), without comments of its own, whose
    /// parentheses might not match, and with one space between words.
    private static func words(_ text: String?) -> String? {
        let plain = (text ?? "").filter { $0.isASCII && !"()\\".contains($0) && ($0 == " " || isVisible($0)) }
        let words = plain.split(separator: " ").joined(separator: " ").prefix(maximumLength)
        return words.isEmpty ? nil : String(words)
    }

    private static func isVisible(_ character: Character) -> Bool {
        (0x21...0x7e).contains(character.asciiValue ?? 0)
    }
}

extension String {
    /// The first so many of the numbers that the text begins with: `6.1` of `6.1.0-18-amd64`.
    fileprivate func versionNumbers(_ count: Int) -> String? {
        let numbers = prefix { $0 == "." || ($0.isASCII && $0.isNumber) }.split(separator: ".").prefix(count)
        return numbers.isEmpty ? nil : numbers.map { $0.prefix(8) }.joined(separator: ".")
    }
}
