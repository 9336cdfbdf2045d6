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
