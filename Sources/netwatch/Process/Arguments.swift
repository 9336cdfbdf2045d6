/// The arguments of this process.
enum Arguments {
    /// Returns the arguments without the name of the program.
    ///
    /// - Throws: A usage error if an argument is not UTF-8. `CommandLine.arguments` would replace its invalid bytes, so
    ///   that a body would be sent with other bytes, and a file name would name another file.
    static func checked() throws(CommandError) -> [String] {
        let pointers = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
        var arguments: [String] = []
        for pointer in pointers.dropFirst() {
            guard let pointer else { break }
            guard let argument = String(validatingCString: pointer) else {
                throw notUTF8(String(cString: pointer), number: arguments.count + 1)
            }
            arguments.append(argument)
        }
        return arguments
    }

    private static func notUTF8(_ repaired: String, number: Int) -> CommandError {
        CommandError(
            .usage,
            "argument \(number) is not UTF-8: \(Printer.quoted(repaired))",
            hint: "`-d @-` and `-T FILE` send any bytes, from standard input or a file with a name in UTF-8"
        )
    }
}
