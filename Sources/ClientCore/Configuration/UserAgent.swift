internal import NetwatchTransport

extension TransferRequest {
    /// The `User-Agent` of requests that do not set one.
    static let defaultUserAgent = "netwatch/0.1.0"
}

/// The `User-Agent` field (RFC 9110 §10.1.5).
enum UserAgent {
    /// The maximum length of a name in characters. Names come from the local machine, but servers limit the
    /// size of all header fields together.
    private static let maximumLength = 64

    /// Returns `program/1.0 (Debian GNU/Linux 12 bookworm; Linux 6.1) netwatch/0.1.0`, without the unknown
    /// parts.
    static func text(for info: ProgramInfo) -> String {
        let system = [
            words(info.osRelease.operatingSystemName),
            // Without the patch level, which would reveal the machine's known vulnerabilities.
            info.kernelRelease.versionNumbers(2).map { "Linux \($0)" },
        ]
        let comment = system.compactMap { $0 }.joined(separator: "; ")
        // The field must begin with a product, not with a comment.
        let product = program(info).map { [$0] } ?? []
        let parts = product + (comment.isEmpty ? [] : ["(\(comment))"])
        let own = TransferRequest.defaultUserAgent
        return (product.isEmpty ? [own] + parts : parts + [own]).joined(separator: " ")
    }

    private static func program(_ info: ProgramInfo) -> String? {
        let name = info.program.split(separator: "/").last ?? ""
        guard let name = token(String(name)) else { return nil }
        return info.programVersion.flatMap(token).map { "\(name)/\($0)" } ?? name
    }

    /// Returns the characters that are allowed in a token (RFC 9110 §5.6.2).
    private static func token(_ text: String) -> String? {
        let token = text.filter { HTTPToken.isValid(String($0)) }.prefix(maximumLength)
        return token.isEmpty ? nil : String(token)
    }

    /// Returns the characters that are allowed in a comment (RFC 9110 §5.6.5), with single spaces between words.
    /// Parentheses are removed, because they start nested comments and might not match.
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
    /// Returns the first `count` numbers at the start of the text: `6.1` of `6.1.0-18-amd64`.
    fileprivate func versionNumbers(_ count: Int) -> String? {
        let numbers = prefix { $0 == "." || ($0.isASCII && $0.isNumber) }.split(separator: ".").prefix(count)
        return numbers.isEmpty ? nil : numbers.map { $0.prefix(8) }.joined(separator: ".")
    }
}
