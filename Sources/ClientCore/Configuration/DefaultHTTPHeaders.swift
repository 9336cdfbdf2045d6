internal import Foundation
internal import Glibc
internal import NetwatchTransport

/// The header fields of the default session.
enum DefaultHTTPHeaders {
    /// The encodings that can be decoded, best first. A machine may lack the library of some of them.
    ///
    /// Alamofire 4 also offers `compress`. It cannot be decoded: a transfer with such a response would fail
    /// with `CURLE_BAD_CONTENT_ENCODING`.
    static let encodings = ["br", "gzip", "deflate"]

    /// Returns `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    ///
    /// - Parameters:
    ///   - info: The properties that the fields are created from. Default: the properties of this program and machine.
    ///   - decoders: The encodings that can be decoded. Default: ``encodings``.
    static func headers(
        for info: ProgramInfo = .current,
        decoders: [String] = encodings
    ) -> HTTPHeaders {
        [
            "Accept-Encoding": acceptEncoding(decoders),
            "Accept-Language": acceptLanguage(PreferredLanguages.list(info.environment)),
            "User-Agent": UserAgent.text(for: info),
        ]
    }

    /// Returns the value of `Accept-Encoding`: the ``encodings`` that are in `decoders`, best first.
    ///
    /// If there are none, the value is `identity` (RFC 9110 §12.5.3). Without the field, the server could choose any
    /// encoding.
    static func acceptEncoding(_ decoders: [String]) -> String {
        let offered = encodings.filter(decoders.contains)
        return offered.isEmpty ? "identity" : ranked(offered)
    }

    /// Returns the value of `Accept-Language` with at most six languages. Qualities are written in tenths, so more
    /// than ten could not be ranked.
    static func acceptLanguage(_ languages: [String]) -> String {
        ranked(languages.prefix(6))
    }

    /// Returns the values with qualities (RFC 9110 §12.4.2): 1.0 for the first, and 0.1 less for each following one.
    private static func ranked(_ values: some Sequence<String>) -> String {
        values.enumerated()
            .map { "\($0.element);q=\($0.offset == 0 ? "1.0" : "0.\(10 - $0.offset)")" }
            .joined(separator: ", ")
    }
}

/// The user's languages as language tags (RFC 5646), from the environment variables that `gettext` reads.
///
/// On Linux, Foundation's `Locale.preferredLanguages` does not read these variables.
enum PreferredLanguages {
    /// The language of programs without translations, which the locales `C` and `POSIX` select.
    private static let untranslated = "en"

    /// Returns the languages, best first, without duplicates. Never empty.
    ///
    /// The locale is the first non-empty value of `LC_ALL`, `LC_MESSAGES` and `LANG`. If it is `C` or `POSIX`, the
    /// result is English. For any other locale, the languages in `LANGUAGE` come first (gettext manual, "The LANGUAGE
    /// variable"). Invalid locale names are ignored.
    static func list(_ environment: [String: String]) -> [String] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy
            .compactMap { environment[$0] }
            .first { !$0.isEmpty }
        guard let locale, !isUntranslated(locale) else { return [untranslated] }
        let preferred = (environment["LANGUAGE"] ?? "").split(separator: ":").map(String.init) + [locale]
        let tags = upToUntranslated(preferred).compactMap(tag)
        return tags.isEmpty ? [untranslated] : unique(tags)
    }

    /// Returns the locales up to and including the first `C` or `POSIX`, because gettext ignores those after it.
    private static func upToUntranslated(_ locales: [String]) -> ArraySlice<String> {
        locales[...(locales.firstIndex(where: isUntranslated) ?? locales.count - 1)]
    }

    private static func isUntranslated(_ locale: String) -> Bool {
        ["C", "POSIX"].contains(locale.prefix { $0 != "." && $0 != "@" })
    }

    /// Converts a locale to a language tag: `de_AT.UTF-8@euro` to `de-AT`, `sr_RS@latin` to `sr-Latn-RS`. Returns
    /// `nil` for an invalid locale.
    static func tag(_ locale: String) -> String? {
        if isUntranslated(locale) { return untranslated }
        let name = locale.prefix { $0 != "." && $0 != "@" }
        let parts = name.split(separator: "_", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), isLanguage(parts[0]) else { return nil }
        guard parts.count == 1 || isTerritory(parts[1]) else { return nil }
        let subtags = [parts[0].lowercased(), script(locale), parts.dropFirst().first?.uppercased()]
        return subtags.compactMap { $0 }.joined(separator: "-")
    }

    private static func script(_ locale: String) -> String? {
        if locale.hasSuffix("@latin") { return "Latn" }
        return locale.hasSuffix("@cyrillic") ? "Cyrl" : nil
    }

    /// Whether the text is a language code of ISO 639: two or three letters.
    private static func isLanguage(_ text: Substring) -> Bool {
        (2...3).contains(text.utf8.count) && text.utf8.allSatisfy(isLetter)
    }

    /// Whether the text is a territory: two letters (ISO 3166) or three digits (UN M.49).
    private static func isTerritory(_ text: Substring) -> Bool {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return text.utf8.count == 2
            ? text.utf8.allSatisfy(isLetter) : text.utf8.count == 3 && text.utf8.allSatisfy(digits.contains)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func unique(_ tags: [String]) -> [String] {
        var seen: Set<String> = []
        return tags.filter { seen.insert($0).inserted }
    }
}

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

/// The properties of the program and the machine from which the default header fields are created.
struct ProgramInfo: Sendable {
    /// The environment variables.
    var environment: [String: String] = [:]
    /// The first argument of the program: its name, possibly with a path.
    var program = ""
    /// The program's version, if it has an `Info.plist` with one.
    var programVersion: String?
    /// The description of the operating system (`os-release(5)`).
    var osRelease = OSRelease("")
    /// The kernel's release (`uname(2)`).
    var kernelRelease = ""

    /// The values of the current process, read once.
    static let current = ProgramInfo(
        environment: ProcessInfo.processInfo.environment,
        program: CommandLine.arguments.first ?? "",
        programVersion: Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String,
        osRelease: .ofThisMachine,
        kernelRelease: Self.kernel()
    )

    private static func kernel() -> String {
        var name = utsname()
        guard uname(&name) == 0 else { return "" }
        return withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// The contents of the file that describes the operating system (`os-release(5)`).
struct OSRelease: Sendable {
    private let values: [String: String]

    /// Parses lines of the form `NAME=value` or `NAME="value"`. If a name occurs twice, the last value is used.
    init(_ text: String) {
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { values[String(parts[0])] = Self.unquoted(parts[1]) }
        }
        self.values = values
    }

    /// `PRETTY_NAME`, or else `NAME` and `VERSION_ID`; `nil` if all are missing.
    var operatingSystemName: String? {
        if let name = value("PRETTY_NAME") { return name }
        let parts = [value("NAME"), value("VERSION_ID")].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    /// The contents of `/etc/os-release`, or else of `/usr/lib/os-release`; empty if neither can be read. At most
    /// 64 KiB are read.
    static var ofThisMachine: OSRelease {
        let paths = ["/etc/os-release", "/usr/lib/os-release"]
        let contents = paths.lazy.compactMap(beginning).first ?? Data()
        return OSRelease(String(decoding: contents, as: UTF8.self))
    }

    private static func beginning(of path: String) -> Data? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        return try? file.read(upToCount: 65_536)
    }

    private func value(_ name: String) -> String? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Removes the surrounding quotes and all backslashes. Escape sequences are not decoded, because the names of
    /// operating systems need none.
    private static func unquoted(_ value: Substring) -> String {
        guard let quote = value.first, quote == "\"" || quote == "'", value.count > 1, value.last == quote
        else { return String(value) }
        return value.dropFirst().dropLast().replacingOccurrences(of: "\\", with: "")
    }
}
