internal import ArgumentParser
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetwatchTransport

/// The arguments of this process.
enum Arguments {
    /// Returns the arguments without the name of the program, as ``ExactText``. `CommandLine.arguments` would replace
    /// bytes that are not UTF-8, so that other bytes would be sent, and another file would be read.
    static func exact() -> [String] {
        let pointers = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
        return pointers.dropFirst().compactMap(\.self).map { argument in
            ExactText.decode(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
        }
    }

    /// Checks the values of a parsed command. Only an ``ArgumentBytes`` can have bytes that are not UTF-8.
    ///
    /// - Parameter arguments: The arguments of the command, as ``ExactText``.
    /// - Throws: A usage error that quotes the argument.
    static func requireText(in command: any ParsableCommand, _ arguments: [String]) throws(CommandError) {
        guard arguments.contains(where: ExactText.hasEscapes) else { return }
        if let text = exactText(in: command) { throw refusal(of: text, in: arguments) }
    }

    /// Returns the first text of a value that has private characters; `nil` if there is none.
    private static func exactText(in value: Any) -> String? {
        if value is ArgumentBytes { return nil }
        if let text = value as? String { return ExactText.hasEscapes(text) ? text : nil }
        for child in Mirror(reflecting: value).children {
            if let text = exactText(in: child.value) { return text }
        }
        return nil
    }

    private static func refusal(of text: String, in arguments: [String]) -> CommandError {
        let index = arguments.firstIndex { $0.hasSuffix(text) }
        let previous = index.flatMap { arguments[..<$0].last }.flatMap { $0.hasPrefix("-") ? $0 : nil }
        let place = previous.map { "the argument after \(Printer.quoted($0))" } ?? "an argument"
        let isUTF8 = ArgumentBytes(argument: text).text != nil
        let reason = isUTF8 ? "has a character from U+F780 to U+F7FF" : "is not UTF-8"
        return CommandError(
            .usage,
            "\(place) \(reason): \(Printer.quoted(index.map { arguments[$0] } ?? text))",
            hint: "only a body (`-d`, `--json`) and the name of a file (`@FILE`, `-T`, `--hosts-from`, "
                + "`queue import`, `--record`, `--replay`, `--socket`) can be any bytes; in a URL, "
                + "percent-encode them, like `%FF`"
        )
    }
}

/// The value of an option that can be any bytes, such as a body or the name of a file.
///
/// The parser passes arguments as text. ``Arguments/exact()`` therefore represents them as ``ExactText``.
struct ArgumentBytes: ExpressibleByArgument, Hashable, CustomStringConvertible {
    /// The name of a file that stands for standard input.
    static let standardInput = ArgumentBytes(argument: "-")

    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    init(argument: String) {
        bytes = ExactText.encode(argument)
    }

    /// The bytes as ``ExactText``.
    var exactText: String { ExactText.decode(bytes) }

    /// The bytes as text; `nil` if they are not UTF-8.
    var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The bytes for people: UTF-8 as text; bytes that are not UTF-8, and those of characters that are not
    /// printable, as `\xNN`.
    var description: String {
        var (text, rest) = (String.UnicodeScalarView(), bytes[...])
        var (parser, source) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator())
        while true {
            let length: Int
            switch parser.parseScalar(from: &source) {
            case .valid(let encoded):
                length = encoded.count
                let scalar = Unicode.UTF8.decode(encoded)
                text.append(
                    contentsOf: scalar.isPrintable ? [scalar] : Self.hexadecimal(rest.prefix(length))
                )
            case .error(let count):
                length = count
                text.append(contentsOf: Self.hexadecimal(rest.prefix(length)))
            case .emptyInput: return String(text)
            }
            rest = rest.dropFirst(length)
        }
    }

    private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> [Unicode.Scalar] {
        bytes.flatMap { byte in
            Array("\\x\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".unicodeScalars)
        }
    }

    /// Returns a message for people. Parts of it may be arguments, as ``ExactText``.
    static func printable(_ message: String) -> String {
        guard ExactText.hasEscapes(message) else { return message }
        var (text, rest) = ("", message.unicodeScalars[...])
        while let first = rest.first {
            let isEscape = ExactText.hasEscapes(String(first))
            let part = rest.prefix { ExactText.hasEscapes(String($0)) == isEscape }
            text += isEscape ? ArgumentBytes(argument: String(part)).description : String(part)
            rest = rest.dropFirst(part.count)
        }
        return text
    }

    /// The bytes and a zero byte, for functions that take a path as a pointer.
    var cString: [CChar] { bytes.map(CChar.init(bitPattern:)) + [0] }
}

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
