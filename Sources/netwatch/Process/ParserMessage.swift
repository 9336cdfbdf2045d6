internal import NetwatchService

/// The messages of swift-argument-parser in the form of this command's messages: in lower case, with values in
/// backticks, and without a full stop.
enum ParserMessage {
    private struct Form {
        let pattern: Regex<AnyRegexOutput>
        /// Returns the message from the groups of the pattern. A group that did not take part is empty.
        let message: ([String]) -> String

        init(_ pattern: some RegexComponent, _ message: @escaping ([String]) -> String) {
            self.pattern = Regex(pattern.regex)
            self.message = message
        }
    }

    /// Returns the message in our form. A message of another form, for example one of our own, is returned unchanged.
    ///
    /// - Parameter arguments: The arguments of the command.
    static func restyled(_ message: String, _ arguments: [String]) -> String {
        for form in forms(arguments) {
            guard let match = message.wholeMatch(of: form.pattern) else { continue }
            return form.message(match.output.map { String($0.substring ?? "") })
        }
        return message
    }

    /// The forms of version 1 of the parser, in its file `UsageGenerator.swift`. An option may be followed by the name
    /// of its value, as in `'--ttl <ttl>'`.
    private static func forms(_ arguments: [String]) -> [Form] {
        [
            Form(/(?s)The value '(.*)' is invalid for '(\S+)(?: [^']*)?'\. Please provide one of (.*)\./) {
                "\(option($0[2])) is \(Printer.quoted($0[1])); accepted: \(list($0[3]))"
            },
            // The option's own check has refused the value. Its message quotes the value.
            Form(/(?s)The value '.*?' is invalid for '(\S+)(?: [^']*)?': (.*)/) {
                "\(option($0[1])): \($0[2])"
            },
            // The only options whose type the parser checks itself are numbers.
            Form(/(?s)The value '(.*)' is invalid for '(\S+)(?: [^']*)?'/) {
                "\(option($0[2])) is \(Printer.quoted($0[1])); it must be a whole number"
            },
            Form(/Unknown option '(\S+)'(?:\. Did you mean '(\S+)'\?)?/) {
                "unknown option \(option($0[1]))\(suggestion(of: $0[2], for: $0[1]))"
            },
            Form(/Missing value for '(\S+)(?: [^']*)?'/) { missingValue(of: $0[1], in: arguments) },
            Form(/Missing expected argument '(.*?)(?: \.\.\.)?'/) { "missing argument \(option($0[1]))" },
            Form(/(?s)Unexpected argument '(.*)'/) { "unexpected argument \(Printer.quoted($0[1]))" },
            Form(/(?s)(\d+) unexpected arguments: '(.*)'/) { groups in
                let names = groups[2].split(separator: "', '").map(Printer.quoted)
                return "\(groups[1]) unexpected arguments: \(names.joined(separator: ", "))"
            },
            Form(/(?s)The option '(\S+)' does not take any value, but '(.*)' was specified\./) {
                "\(option($0[1])) takes no value, but \(Printer.quoted($0[2])) was given"
            },
        ]
    }

    /// The parser takes an argument that begins with `-` for an option, even if it is a negative number.
    private static func missingValue(of name: String, in arguments: [String]) -> String {
        let following = arguments.drop { $0 != name }.dropFirst().first
        guard let following, following.hasPrefix("-") else { return "\(option(name)) requires a value" }
        guard following.dropFirst().first?.isNumber == true else {
            return "\(option(name)) requires a value, but the option \(Printer.quoted(following)) follows it"
        }
        return "\(option(name)) is \(Printer.quoted(following)); it must not be negative"
    }

    /// Returns the parser's suggestion for an unknown option. It is left out if the names are not similar.
    private static func suggestion(of name: String, for option: String) -> String {
        let (meant, given) = (name.drop { $0 == "-" }, option.drop { $0 == "-" })
        guard !meant.isEmpty, NameSuggestion.isSimilar(String(given), to: String(meant)) else { return "" }
        return "; did you mean \(Self.option(name))?"
    }

    private static func option(_ name: String) -> String { "`\(name)`" }

    /// Returns a list such as `'auto', 'always' or 'never'` as `auto, always, never`.
    private static func list(_ text: String) -> String {
        text.replacing("' or '", with: "', '").replacing("' and '", with: "', '").replacing("'", with: "")
    }
}
