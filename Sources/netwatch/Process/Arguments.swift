internal import ArgumentParser
internal import Glibc
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
