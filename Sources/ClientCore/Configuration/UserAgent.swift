internal import NetwatchTransport

extension TransferRequest {
    /// The `User-Agent` of requests that do not set one.
    static let defaultUserAgent = "netwatch/\(NetwatchVersion.current)"
}

/// The `User-Agent` field (RFC 9110 §10.1.5).
enum UserAgent {
    /// The maximum length of each name in characters. Servers reject requests with very long header fields.
    private static let maximumLength = 64

    /// Returns the value of the field: `program/1.0 (Debian GNU/Linux 12 bookworm; Linux 6.1) netwatch/0.1.0`.
    /// Unknown parts are omitted.
    static func text(for info: ProgramInfo) -> String {
        let system = [
            words(info.osRelease.operatingSystemName),
            // The patch level is omitted, because it would reveal which vulnerabilities the machine has.
            info.kernelRelease.versionNumbers(2).map { "Linux \($0)" },
        ]
        let comment = system.compactMap { $0 }.joined(separator: "; ")
        // The field must begin with a product (`name/version`), not with a comment in parentheses.
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

    /// Returns the text without the characters that a token must not contain (RFC 9110 §5.6.2); `nil` if none remain.
    private static func token(_ text: String) -> String? {
        let token = text.filter { HTTPToken.isValid(String($0)) }.prefix(maximumLength)
        return token.isEmpty ? nil : String(token)
    }

    /// Returns the text without the characters that a comment must not contain (RFC 9110 §5.6.5), and with single
    /// spaces between words; `nil` if none remain. Parentheses are removed, because they would nest comments and
    /// might not be balanced.
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
