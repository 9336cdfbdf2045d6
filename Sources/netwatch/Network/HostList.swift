internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// The hosts to watch, from a command's arguments and from a file. If any of them is invalid, every invalid one is
/// reported, and reading fails.
struct HostList {
    /// The maximum number of hosts for one command.
    static let limit = 100_000
    /// The maximum bytes of a file of hosts: enough for ``limit`` names of the longest kind, 253 bytes, with some
    /// comments.
    static let longestFile = 32 * 1024 * 1024
    /// The maximum bytes of a line, including its comment.
    static let longestLine = 4096

    /// The maximum number of invalid values that are reported. It bounds the output for a file that is not a list of
    /// hosts.
    static let longestReport = 1000

    private(set) var hosts: [NetworkHost] = []
    private var known: Set<NetworkHost> = []
    private var isTooLong = false
    private var problems: [String] = []
    private var unnamedProblems = 0
    /// The probe that a rejected URL or `HOST:PORT` probably meant.
    private var suggestion: String?

    /// Reads arguments and the file that `--hosts-from` names; `-` is standard input.
    ///
    /// - Throws: A summary error. Every invalid value is reported on standard error first.
    static func reading(
        _ arguments: [String],
        from file: ArgumentBytes?
    ) throws(CommandError) -> [NetworkHost] {
        var list = HostList()
        for argument in arguments { list.add(argument, at: nil) }
        if let file { try list.read(file) }
        try list.reportProblems()
        return list.hosts
    }

    private func reportProblems() throws(CommandError) {
        if isTooLong {
            throw CommandError(
                .usage,
                "too many hosts: at most \(Self.limit) are accepted",
                hint: "split the list, and run several commands"
            )
        }
        let more = unnamedProblems > 0 ? ["\(unnamedProblems) more values are not hosts"] : []
        let messages = problems + more
        guard let last = messages.last else { return }
        for message in messages.dropLast() { Printer.error(message) }
        let hint = messages.count == 1 ? suggestion : nil
        throw CommandError(.usage, last, hint: hint ?? "accepted: \(NetworkHost.acceptedForms)")
    }

    private mutating func add(_ text: String, at place: String?) {
        let host: NetworkHost
        do throws(InvalidHost) {
            host = try NetworkHost(validating: text)
        } catch {
            let prefix = place.map { "\($0): " } ?? ""
            suggestion = ProbeChoice.suggestion(for: error)
            // A user may have given a URL instead.
            let shown = Printer.quoted(RedactedURL.text(ofUnchecked: text))
            return refuse(prefix + "\(shown) is not a valid host: \(error.explanation)")
        }
        guard !known.contains(host) else { return }
        guard hosts.count < Self.limit else { return isTooLong = true }
        known.insert(host)
        hosts.append(host)
    }

    private mutating func refuse(_ problem: String) {
        if problems.count < Self.longestReport { problems.append(problem) } else { unnamedProblems += 1 }
    }

    // MARK: Files

    private mutating func read(_ file: ArgumentBytes) throws(CommandError) {
        let name = file == .standardInput ? "standard input" : "\(file)"
        let bytes = try InputFile.read(file, limit: Self.longestFile).withoutByteOrderMark
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            add(line: line, at: "\(name):\(index + 1)")
        }
        if problems.isEmpty, hosts.isEmpty {
            throw CommandError(.usage, "`\(name)` contains no host", hint: "write one host per line")
        }
    }

    /// Parses a line, which has a host, a comment after `#`, both or nothing.
    private mutating func add(line: Data, at place: String) {
        guard line.count <= Self.longestLine else {
            return refuse("\(place): the line is longer than \(Self.longestLine) bytes")
        }
        let content = line.prefix { $0 != UInt8(ascii: "#") }
        guard let text = String(validating: content, as: UTF8.self) else {
            return refuse("\(place): the line is not UTF-8")
        }
        let host = text.trimmingCharacters(in: .whitespaces.union(.newlines))
        if !host.isEmpty { add(host, at: place) }
    }
}
